#include "targets/answer.h"

#include "wire/token_count.h"

namespace molly::targets {
namespace {

namespace asio = boost::asio;

constexpr std::size_t max_error_bytes = 64 << 10;
constexpr std::size_t max_count_bytes = 256 << 20;  // /tokenize lists the tokens of a prompt

FailureKind kind_of(http::FailureKind kind) {
  switch (kind) {
    case http::FailureKind::not_permitted: return FailureKind::unproven;
    case http::FailureKind::busy: return FailureKind::busy;
    case http::FailureKind::refused: return FailureKind::refused;
    case http::FailureKind::dns: return FailureKind::dns;
    case http::FailureKind::tls: return FailureKind::tls;
    case http::FailureKind::connect_timeout: return FailureKind::connect_timeout;
    case http::FailureKind::write_timeout: return FailureKind::stall;
    case http::FailureKind::first_byte_timeout: return FailureKind::first_byte_timeout;
    case http::FailureKind::idle_stall: return FailureKind::stall;
    case http::FailureKind::reset: return FailureKind::reset;
    case http::FailureKind::truncated: return FailureKind::truncated;
    case http::FailureKind::garbage: return FailureKind::garbage;
    case http::FailureKind::head_too_large: return FailureKind::garbage;
    case http::FailureKind::cancelled: return FailureKind::none;
  }
  return FailureKind::garbage;
}

Failure failure_of(const http::Failure& failure) { return {kind_of(failure.kind), failure.error(), 0}; }

Failure garbage(Error error) {
  error.code = ErrorCode::upstream_failed;
  return {FailureKind::garbage, std::move(error), 0};
}

FailureKind kind_of_status(unsigned status, ErrorCode code) {
  if (code == ErrorCode::context_length_exceeded) return FailureKind::too_long;
  if (status == 429) return FailureKind::rate_limited;
  if (status == 403) return FailureKind::denied;
  if (status == 401 || status == 404 || status == 405) return FailureKind::bad_credentials;
  if (status == 408 || status >= 500) return FailureKind::server_error;
  if (status >= 400) return FailureKind::rejected;
  return FailureKind::garbage;
}

// What the target said of its own failure, in the terms of our clients: that our key for it is wrong, or that
// it does not know its model, is our operator's problem and not a 401 or 404 of theirs.
Error error_for_client(Error error, FailureKind kind) {
  if (kind == FailureKind::bad_credentials || kind == FailureKind::server_error || kind == FailureKind::garbage) {
    error.code = ErrorCode::upstream_failed;
  }
  return error;
}

asio::awaitable<Failure> read_error(egress::Upstream& upstream) {
  const unsigned status = upstream.status();
  const auto body = co_await upstream.read_all(max_error_bytes);
  const auto retry_after = upstream.headers().find("retry-after").value_or("");
  Error error = wire::parse_error_answer(static_cast<int>(status), body ? std::string_view(*body) : "", retry_after);
  const FailureKind kind = kind_of_status(status, error.code);
  co_return Failure{kind, error_for_client(std::move(error), kind), static_cast<int>(status)};
}

bool is_event_stream(const http::HeaderList& headers) {
  return headers.find("content-type").value_or("").starts_with("text/event-stream");
}

}  // namespace

Answer::Answer(egress::Upstream upstream, Question question)
    : upstream_(std::move(upstream)),
      question_(std::move(question)),
      streamed_(is_event_stream(upstream_.headers())),
      chunks_(question_.endpoint, question_.choices),
      silent_until_(std::chrono::steady_clock::now() + question_.first_event) {}

asio::awaitable<Attempt<std::span<Event>>> Answer::next() {
  events_.clear();
  if (broken_) co_return std::unexpected(*broken_);
  if (streamed_) co_return co_await read_stream();
  co_return co_await read_whole();
}

asio::awaitable<Attempt<std::span<Event>>> Answer::read_whole() {
  const auto body = co_await upstream_.read_all(question_.max_bytes);
  if (!body) co_return std::unexpected(failure_of(body.error()));
  auto events =
      question_.endpoint == Endpoint::chat ? wire::parse_chat_answer(*body) : wire::parse_completion_answer(*body);
  if (!events) co_return std::unexpected(garbage(std::move(events.error())));
  events_ = std::move(*events);
  co_return std::span<Event>(events_);
}

asio::awaitable<Attempt<std::span<Event>>> Answer::read_stream() {
  while (events_.empty()) {
    const auto bytes = co_await upstream_.read_some();
    if (!bytes) co_return std::unexpected(failure_of(bytes.error()));
    if (bytes->empty()) co_return end_of_stream();
    sse_.feed(*bytes);
    if (auto parsed = parse_available(); !parsed) {
      // What one read happens to hold must not decide whether the events before the fault count.
      broken_ = std::move(parsed.error());
      if (events_.empty()) co_return std::unexpected(*broken_);
      break;
    }
    if (events_.empty() && std::chrono::steady_clock::now() > silent_until_) {
      co_return std::unexpected(
          Failure{FailureKind::stall,
                  {ErrorCode::timeout, "the target keeps the connection open but sends nothing of its answer", ""},
                  0});
    }
  }
  silent_until_ = std::chrono::steady_clock::now() + question_.next_event;
  co_return std::span<Event>(events_);
}

Attempt<void> Answer::parse_available() {
  while (true) {
    const auto event = sse_.next();
    if (!event) return std::unexpected(garbage(event.error()));
    if (!*event) return {};
    auto events = chunks_.parse((*event)->data, (*event)->name);
    if (!events) return std::unexpected(garbage(std::move(events.error())));
    std::ranges::move(*events, std::back_inserter(events_));
  }
}

// A stream may end without its end mark once every choice is finished; anywhere else it was cut off.
Attempt<std::span<Event>> Answer::end_of_stream() {
  if (!chunks_.finished()) {
    return std::unexpected(
        Failure{FailureKind::truncated, {ErrorCode::upstream_failed, "the answer ended before its end", ""}, 0});
  }
  events_.emplace_back(Done{});
  return std::span<Event>(events_);
}

asio::awaitable<void> Answer::drain() {
  if (streamed_) static_cast<void>(co_await upstream_.read_some());
}

std::string Answer::remote_route() const { return std::string(upstream_.headers().find("x-molly-route").value_or("")); }

std::string Answer::remote_dropped() const {
  return std::string(upstream_.headers().find("x-molly-dropped").value_or(""));
}

asio::awaitable<Attempt<std::optional<std::uint64_t>>> count_tokens(egress::Door& door,
                                                                    const egress::Endpoint& endpoint,
                                                                    policy::AnyDispatch dispatch,
                                                                    std::string_view path) {
  egress::Endpoint server = endpoint;
  if (server.base_path.ends_with("/v1")) server.base_path.resize(server.base_path.size() - 3);
  auto upstream = co_await door.send(server, std::move(dispatch), egress::Outbound{.path = path});
  if (!upstream) co_return std::unexpected(failure_of(upstream.error()));
  if (upstream->status() >= 500) co_return std::unexpected(co_await read_error(*upstream));
  const auto body = co_await upstream->read_all(max_count_bytes);
  if (!body) co_return std::unexpected(failure_of(body.error()));
  const auto count = wire::parse_token_count(*body);
  if (upstream->status() / 100 != 2 || !count) co_return std::nullopt;
  co_return *count;
}

asio::awaitable<Attempt<std::unique_ptr<Answer>>> ask(egress::Door& door, const egress::Endpoint& endpoint,
                                                      policy::AnyDispatch dispatch, Question question) {
  question.first_event = endpoint.deadlines.first_byte;
  question.next_event = endpoint.deadlines.idle;
  egress::Outbound outbound;
  outbound.path = question.endpoint == Endpoint::chat ? "/chat/completions" : "/completions";
  if (question.stream) outbound.accept = "text/event-stream";
  if (!question.clearance.empty()) outbound.headers.push_back({"x-molly-clearance", question.clearance});
  auto upstream = co_await door.send(endpoint, std::move(dispatch), std::move(outbound));
  if (!upstream) co_return std::unexpected(failure_of(upstream.error()));
  if (upstream->status() / 100 != 2) co_return std::unexpected(co_await read_error(*upstream));
  co_return std::make_unique<Answer>(std::move(*upstream), std::move(question));
}

}  // namespace molly::targets
