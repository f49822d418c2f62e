#include "egress/door.h"

#include <map>

#include "egress/connector.h"
#include "http/deadline.h"

namespace molly::egress {

namespace asio = boost::asio;
using http::Attempt;
using http::FailureKind;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::chrono::milliseconds tidy_every{5'000};
constexpr std::size_t most_probe_bytes = 64 << 10;

struct IdleConnection {
  http::Client client;
  Clock::time_point since;
};

// The connections of one target at one place. Requests under way keep it alive past a reload.
struct Pool {
  std::string place;
  std::vector<IdleConnection> idle;
  std::size_t in_use = 0;
  bool retired = false;  // the target moved or went: nothing comes back
};

// What must be the same for a connection to serve.
std::string place_of(const Endpoint& endpoint) {
  std::string place = endpoint.socket.native();
  place.append("|").append(endpoint.host).append("|").append(std::to_string(endpoint.port)).append("|");
  place.push_back(static_cast<char>('0' + static_cast<int>(endpoint.tier)));
  place.push_back(static_cast<char>('0' + static_cast<int>(endpoint.scheme)));
  if (endpoint.pin) place.append(reinterpret_cast<const char*>(endpoint.pin->data()), endpoint.pin->size());
  return place;
}

// Counts one request among those of its pool for as long as it lives.
class Occupied {
 public:
  explicit Occupied(std::shared_ptr<Pool> pool) : pool_(std::move(pool)) { ++pool_->in_use; }
  ~Occupied() {
    if (pool_) --pool_->in_use;
  }
  Occupied(Occupied&&) noexcept = default;
  Occupied& operator=(Occupied&&) = delete;
  Pool& pool() { return *pool_; }

 private:
  std::shared_ptr<Pool> pool_;
};

// A request's head holds the target's key.
struct WipedText {
  explicit WipedText(std::string text_) : text(std::move(text_)) {}
  ~WipedText() { base::wipe(text.data(), text.size()); }
  WipedText(const WipedText&) = delete;
  WipedText& operator=(const WipedText&) = delete;
  std::string text;
};

Result<std::string> render(const Endpoint& endpoint, const Outbound& request, std::string_view target,
                           std::optional<std::size_t> body_size) {
  std::vector<http::Header> headers;
  headers.reserve(request.headers.size() + 4);
  headers.push_back({"User-Agent", "molly/" MOLLY_VERSION});
  headers.push_back({"Accept", request.accept});
  if (body_size) headers.push_back({"Content-Type", request.content_type});
  std::string bearer;
  if (!endpoint.key.empty()) {
    bearer.reserve(7 + endpoint.key.size());
    bearer.append("Bearer ").append(endpoint.key.reveal());
    headers.push_back({"Authorization", bearer});
  }
  headers.insert(headers.end(), request.headers.begin(), request.headers.end());
  auto head = http::request_head(request.method, target, host_header(endpoint), headers, body_size);
  base::wipe(bearer.data(), bearer.size());
  return head;
}

// Answers that nobody asked for: following or decoding them would be doing something else than was permitted.
Attempt<void> check_answer(const http::ResponseHead& head) {
  if (head.status >= 300 && head.status < 400) {
    return http::failed(FailureKind::garbage, "the target answered with a redirect, which is not followed");
  }
  const auto encoding = head.headers.find("content-encoding");
  if (encoding && !encoding->empty() && !http::equal_names(*encoding, "identity")) {
    return http::failed(FailureKind::garbage, "the target used a content encoding that was not asked for");
  }
  return {};
}

}  // namespace

struct Door::State : std::enable_shared_from_this<Door::State> {
  State(asio::io_context& context, DoorOptions options)
      : keep_idle(options.keep_idle), connector(context, std::move(options)), tidy(context, [this] { clean(); }) {}

  std::shared_ptr<Pool> pool_for(const Endpoint& endpoint) {
    std::string place = place_of(endpoint);
    auto& pool = pools[endpoint.target];
    if (pool && pool->place == place) return pool;
    if (pool) retire(*pool);
    pool = std::make_shared<Pool>();
    pool->place = std::move(place);
    return pool;
  }

  static void retire(Pool& pool) {
    pool.retired = true;
    pool.idle.clear();
  }

  std::optional<http::Client> take(Pool& pool) const {
    while (!pool.idle.empty()) {
      IdleConnection last = std::move(pool.idle.back());
      pool.idle.pop_back();
      if (!last.client.stale() && Clock::now() - last.since < keep_idle) return std::move(last.client);
    }
    return std::nullopt;
  }

  void give_back(Pool& pool, http::Client client) {
    if (pool.retired || !client.reusable()) return;
    pool.idle.push_back({std::move(client), Clock::now()});
    if (!tidy.armed()) tidy.arm(tidy_every);
  }

  // Closes what the peer closed, and what nobody used for long.
  void clean() {
    const auto now = Clock::now();
    std::size_t left = 0;
    for (auto& [name, pool] : pools) {
      std::erase_if(pool->idle,
                    [&](IdleConnection& idle) { return now - idle.since >= keep_idle || idle.client.stale(); });
      left += pool->idle.size();
    }
    if (left > 0) tidy.arm(tidy_every);
  }

  asio::awaitable<Attempt<http::ResponseHead>> ask(http::Client& client, const Endpoint& endpoint,
                                                   std::string_view head, std::string_view body) {
    if (auto sent = co_await client.send(head, body, endpoint.deadlines); !sent) {
      co_return std::unexpected(std::move(sent.error()));
    }
    co_return co_await client.read_head();
  }

  asio::awaitable<Attempt<Upstream>> round_trip(const Endpoint& endpoint, const Outbound& request, std::string target,
                                                std::optional<std::string_view> body);

  std::chrono::milliseconds keep_idle;
  Connector connector;
  std::map<std::string, std::shared_ptr<Pool>, std::less<>> pools;
  http::Deadline tidy;
};

struct Upstream::State {
  State(std::weak_ptr<Door::State> door_, Occupied occupied_, http::Client client_, http::ResponseHead head_)
      : door(std::move(door_)), occupied(std::move(occupied_)), client(std::move(client_)), head(std::move(head_)) {}
  ~State() {
    if (const auto alive = door.lock()) alive->give_back(occupied.pool(), std::move(client));
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  std::weak_ptr<Door::State> door;
  Occupied occupied;
  http::Client client;
  http::ResponseHead head;
};

Upstream::Upstream(std::unique_ptr<State> state) : state_(std::move(state)) {}
Upstream::Upstream(Upstream&&) noexcept = default;
Upstream& Upstream::operator=(Upstream&&) noexcept = default;
Upstream::~Upstream() = default;

void Upstream::abort() { state_->client.stream().close(); }
unsigned Upstream::status() const { return state_->head.status; }
const http::HeaderList& Upstream::headers() const { return state_->head.headers; }
asio::awaitable<Attempt<std::string_view>> Upstream::read_some() { return state_->client.read_some(); }
asio::awaitable<Attempt<std::string>> Upstream::read_all(std::size_t limit) { return state_->client.read_all(limit); }

asio::awaitable<Attempt<Upstream>> Door::State::round_trip(const Endpoint& endpoint, const Outbound& request,
                                                           std::string target, std::optional<std::string_view> body) {
  const auto self = shared_from_this();
  const auto pool = pool_for(endpoint);
  if (pool->in_use >= endpoint.connections) co_return http::failed(FailureKind::busy);
  Occupied occupied(pool);
  auto rendered = render(endpoint, request, target, body ? std::optional(body->size()) : std::nullopt);
  if (!rendered) co_return http::failed(FailureKind::not_permitted, rendered.error().message);
  const WipedText head(std::move(*rendered));
  std::optional<http::Client> client = take(*pool);
  const bool reused = client.has_value();
  for (bool fresh = !reused;; fresh = true) {
    if (fresh) {
      auto connected = co_await connector.connect(endpoint);
      if (!connected) co_return std::unexpected(std::move(connected.error()));
      client.emplace(std::move(*connected));
    }
    auto answer = co_await ask(*client, endpoint, head.text, body.value_or(std::string_view()));
    if (answer) {
      if (auto checked = check_answer(*answer); !checked) co_return std::unexpected(std::move(checked.error()));
      co_return Upstream(std::make_unique<Upstream::State>(weak_from_this(), std::move(occupied), std::move(*client),
                                                           std::move(*answer)));
    }
    // The peer closed a kept connection as we took it: it has not seen the request, or it would have answered.
    const bool was_stale = !fresh && answer.error().kind == FailureKind::reset && client->nothing_received();
    if (!was_stale) co_return std::unexpected(std::move(answer.error()));
    pool->idle.clear();
  }
}

Door::Door(asio::io_context& context, DoorOptions options)
    : state_(std::make_shared<State>(context, std::move(options))) {}
Door::~Door() = default;

asio::awaitable<Attempt<Upstream>> Door::exchange(const Endpoint& endpoint, const Outbound& request,
                                                  std::string_view body) {
  std::string target = endpoint.base_path;
  target.append(request.path);
  return state_->round_trip(endpoint, request, std::move(target), body);
}

asio::awaitable<Attempt<Upstream>> Door::send(const Endpoint& endpoint, policy::AnyDispatch dispatch,
                                              Outbound request) {
  co_return co_await std::visit(
      [&](auto& one) { return send(endpoint, std::move(one.permit), std::move(one.payload), std::move(request)); },
      dispatch);
}

asio::awaitable<Attempt<ProbeAnswer>> Door::probe(const Endpoint& endpoint, std::string_view path) {
  if (endpoint.tier > Tier::t1) co_return http::failed(FailureKind::not_permitted, "only T0 and T1 are probed");
  Outbound request;
  request.method = "GET";
  auto upstream = co_await state_->round_trip(endpoint, request, std::string(path), std::nullopt);
  if (!upstream) co_return std::unexpected(std::move(upstream.error()));
  auto body = co_await upstream->read_all(most_probe_bytes);
  if (!body) co_return std::unexpected(std::move(body.error()));
  co_return ProbeAnswer{upstream->status(), std::move(*body)};
}

void Door::forget(std::string_view target) {
  for (auto entry = state_->pools.begin(); entry != state_->pools.end();) {
    if (!target.empty() && entry->first != target) {
      ++entry;
      continue;
    }
    State::retire(*entry->second);
    entry = state_->pools.erase(entry);
  }
}

std::size_t Door::idle_connections() const {
  std::size_t count = 0;
  for (const auto& [name, pool] : state_->pools) count += pool->idle.size();
  return count;
}

std::size_t Door::open_connections() const {
  std::size_t count = idle_connections();
  for (const auto& [name, pool] : state_->pools) count += pool->in_use;
  return count;
}

}  // namespace molly::egress
