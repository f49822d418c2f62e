#include "server/endpoints.h"

#include <boost/asio/this_coro.hpp>

#include "pipeline/conversation.h"
#include "server/reply.h"
#include "wire/openai.h"

namespace molly::server {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::milliseconds overload_pause{1000};

// Counts a request for as long as it is served.
class InFlight {
 public:
  explicit InFlight(std::atomic<std::uint64_t>& count) : count_(count), before_(count.fetch_add(1)) {}
  ~InFlight() { count_.fetch_sub(1); }
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;
  std::uint64_t before() const { return before_; }

 private:
  std::atomic<std::uint64_t>& count_;
  std::uint64_t before_;
};

// Lists a conversation with its thread for as long as it lives.
class Listed {
 public:
  Listed(std::vector<pipeline::Conversation*>& list, pipeline::Conversation& conversation)
      : list_(list), conversation_(&conversation) {
    list_.push_back(conversation_);
  }
  ~Listed() {
    auto place = std::ranges::find(list_, conversation_);
    *place = list_.back();
    list_.pop_back();
  }
  Listed(const Listed&) = delete;
  Listed& operator=(const Listed&) = delete;

 private:
  std::vector<pipeline::Conversation*>& list_;
  pipeline::Conversation* conversation_;
};

std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

wire::AnswerIdentity identity_of(const pipeline::Conversation& conversation) {
  const std::string_view prefix = conversation.request().endpoint == Endpoint::chat ? "chatcmpl-" : "cmpl-";
  const std::string& route = conversation.route_text();
  return {std::string(prefix) + conversation.trace().text().substr(3), unix_seconds(),
          route.substr(0, route.find(';'))};
}

ReplyHeaders answer_headers(const http::Exchange& exchange, const pipeline::Conversation& conversation) {
  ReplyHeaders headers(exchange);
  headers.add("x-molly-trace", conversation.trace().text());
  if (!conversation.route_text().empty()) headers.add("x-molly-route", conversation.route_text());
  if (std::string dropped = conversation.dropped_text(); !dropped.empty())
    headers.add("x-molly-dropped", std::move(dropped));
  return headers;
}

asio::awaitable<void> answer_whole(http::Exchange& exchange, pipeline::Conversation& conversation) {
  wire::AnswerBuilder builder(conversation.request().endpoint);
  for (auto events = co_await conversation.next(); !events.empty(); events = co_await conversation.next()) {
    for (Event& event : events) builder.add(std::move(event));
  }
  ReplyHeaders headers = answer_headers(exchange, conversation);
  if (builder.error()) {
    co_await reply_error(exchange, *builder.error(), std::move(headers));
  } else {
    co_await reply_json(exchange, 200, builder.render(identity_of(conversation)), std::move(headers));
  }
}

asio::awaitable<void> answer_stream(http::Exchange& exchange, pipeline::Conversation& conversation) {
  ReplyHeaders headers = answer_headers(exchange, conversation);
  headers.add("content-type", "text/event-stream");
  headers.add("cache-control", "no-cache");
  if (!exchange.start_stream(200, headers.view())) co_return;
  const bool usage_asked = conversation.request().include_usage.value_or(false);
  wire::ChunkRenderer renderer(conversation.request().endpoint, identity_of(conversation),
                               usage_asked ? wire::UsageInStream::asked : wire::UsageInStream::not_asked);
  std::string bytes;
  for (auto events = co_await conversation.next(); !events.empty(); events = co_await conversation.next()) {
    bytes.clear();
    for (const Event& event : events) bytes += renderer.render(event);
    if (conversation.ended()) break;
    if (!bytes.empty() && !co_await exchange.write(bytes)) co_return;
  }
  static_cast<void>(co_await exchange.finish(bytes));
  conversation.drain(co_await asio::this_coro::executor);
}

wire::ModelEntry entry(std::string id, std::string owner) {
  return {.id = std::move(id), .created = 0, .owned_by = std::move(owner), .extra = {}};
}

std::vector<wire::ModelEntry> model_entries(const pipeline::Runtime& runtime, const members::Key* key) {
  std::vector<wire::ModelEntry> out;
  const auto add = [&](const std::string& name, std::string owner) {
    const bool in_scope = key == nullptr || key->scope.models.empty() || std::ranges::contains(key->scope.models, name);
    if (in_scope) out.push_back(entry(name, std::move(owner)));
  };
  add("auto", "molly");
  for (const auto& target : runtime.targets) {
    const TargetDescription& description = target->description();
    add(description.name,
        description.provider.empty() ? std::string(to_string(description.tier)) : description.provider);
  }
  for (const auto& [alias, names] : runtime.aliases) add(alias, "alias");
  return out;
}

Error not_here(std::string_view method, std::string_view path) {
  const bool posts = path == "/v1/chat/completions" || path == "/v1/completions";
  const bool gets = path == "/v1/models" || path.starts_with("/v1/models/") || path == "/health" || path == "/ready" ||
                    path == "/metrics";
  if (posts || gets) {
    return {ErrorCode::method_not_allowed,
            std::string(path.substr(0, 200)) + " takes " + (posts ? "POST" : "GET") + ", not " +
                std::string(method.substr(0, 20)),
            ""};
  }
  return {ErrorCode::not_found,
          "there is nothing at " + std::string(method) + " " + std::string(path.substr(0, 200)) +
              "; chat is POST /v1/chat/completions",
          ""};
}

}  // namespace

void ThreadContext::interrupt_all(const Error& reason) {
  for (pipeline::Conversation* conversation : conversations) conversation->interrupt(reason);
}

Endpoints::Endpoints(pipeline::Services& services, members::Keys& keys, Metrics& metrics, config::Live<Limits>& limits,
                     Administration administration)
    : services_(services),
      keys_(keys),
      metrics_(metrics),
      limits_(limits),
      administration_(std::move(administration)) {}

asio::awaitable<void> Endpoints::handle(http::Exchange& exchange, ThreadContext& thread) {
  const std::string_view path = exchange.path();
  const std::string_view method = exchange.method();
  if (method == "GET" && path == "/health") co_return co_await health(exchange, true);
  if (method == "GET" && path == "/ready") co_return co_await health(exchange, administration_.ready());
  const auto identity = identify(exchange, keys_, limits_.snapshot()->access);
  if (!identity) {
    metrics_.refused(identity.error().code);
    co_return co_await reply_error(exchange, identity.error(), ReplyHeaders(exchange));
  }
  constexpr std::string_view models_path = "/v1/models";
  if (method == "POST" && path == "/v1/chat/completions")
    co_return co_await generate(exchange, thread, *identity, Endpoint::chat);
  if (method == "POST" && path == "/v1/completions")
    co_return co_await generate(exchange, thread, *identity, Endpoint::completions);
  if (method == "GET" && path == models_path) co_return co_await models(exchange, *identity, "");
  if (method == "GET" && path.starts_with("/v1/models/")) {
    co_return co_await models(exchange, *identity, path.substr(models_path.size() + 1));
  }
  if (method == "GET" && path == "/metrics") co_return co_await metrics(exchange);
  constexpr std::string_view admin_path = "/molly/v1/";
  if (identity->owner && path.starts_with(admin_path))
    co_return co_await administer(exchange, path.substr(admin_path.size()));
  co_await reply_error(exchange, not_here(method, path), ReplyHeaders(exchange));
}

asio::awaitable<void> Endpoints::generate(http::Exchange& exchange, ThreadContext& thread, const Identity& identity,
                                          Endpoint endpoint) {
  const InFlight in_flight(in_flight_);
  if (in_flight.before() >= limits_.snapshot()->max_in_flight) {
    metrics_.refused(ErrorCode::rate_limited);
    co_return co_await reply_error(
        exchange,
        Error{ErrorCode::rate_limited, "too many requests are being served right now; try again", "", overload_pause},
        ReplyHeaders(exchange));
  }
  auto caller = pipeline::read_caller([&](std::string_view name) { return exchange.header(name); });
  auto request = endpoint == Endpoint::chat ? wire::parse_chat_request(exchange.body())
                                            : wire::parse_completion_request(exchange.body());
  const Error* wrong = !caller ? &caller.error() : !request ? &request.error() : nullptr;
  if (wrong != nullptr) {
    metrics_.refused(wrong->code);
    co_return co_await reply_error(exchange, *wrong, ReplyHeaders(exchange));
  }
  caller->key = identity.key;
  pipeline::Conversation conversation(services_, std::move(*request), std::move(*caller));
  const Listed listed(thread.conversations, conversation);
  if (auto begun = co_await conversation.begin(thread.door); !begun) {
    co_return co_await reply_error(exchange, begun.error(), answer_headers(exchange, conversation));
  }
  if (conversation.request().stream) {
    co_await answer_stream(exchange, conversation);
  } else {
    co_await answer_whole(exchange, conversation);
  }
}

asio::awaitable<void> Endpoints::models(http::Exchange& exchange, const Identity& identity, std::string_view name) {
  const auto entries = model_entries(*services_.runtime.snapshot(), identity.key.get());
  if (name.empty())
    co_return co_await reply_json(exchange, 200, wire::render_model_list(entries), ReplyHeaders(exchange));
  const auto found = std::ranges::find(entries, name, &wire::ModelEntry::id);
  if (found != entries.end())
    co_return co_await reply_json(exchange, 200, wire::render_model(*found), ReplyHeaders(exchange));
  const auto unknown = pipeline::select(*services_.runtime.snapshot(), name);
  const Error error = unknown ? Error{ErrorCode::not_found, "there is no such model", "model"} : unknown.error();
  co_await reply_error(exchange, error, ReplyHeaders(exchange));
}

asio::awaitable<void> Endpoints::health(http::Exchange& exchange, bool ready) {
  if (exchange.draining() || !ready) {
    const std::string_view why = exchange.draining() ? "draining" : "no target is ready";
    co_return co_await reply_json(exchange, 503, R"({"status":")" + std::string(why) + "\"}", ReplyHeaders(exchange));
  }
  co_await reply_json(exchange, 200, R"({"status":"ok"})", ReplyHeaders(exchange));
}

asio::awaitable<void> Endpoints::metrics(http::Exchange& exchange) {
  const auto audit = services_.audit.status();
  const std::string text = metrics_.render({.in_flight = in_flight(),
                                            .connections = administration_.connections(),
                                            .audit_records = audit.records,
                                            .audit_failing = audit.failing,
                                            .traces_lost = services_.traces.lost()});
  ReplyHeaders headers(exchange);
  headers.add("content-type", "text/plain; version=0.0.4");
  const auto all = headers.view();
  static_cast<void>(co_await exchange.respond(200, all, text));
}

asio::awaitable<void> Endpoints::administer(http::Exchange& exchange, std::string_view path) {
  const std::string_view method = exchange.method();
  if (method == "GET" && path == "status") {
    co_return co_await reply_json(exchange, 200, administration_.status_json(), ReplyHeaders(exchange));
  }
  Result<void> done = failure(ErrorCode::not_found, "there is no such administration call");
  if (method == "POST" && path == "reload") {
    administration_.request_reload();
    done = {};
  } else if (method == "POST" && path == "restart") {
    administration_.request_restart();
    done = {};
  } else if (method == "POST" && path == "keys") {
    done = keys_.reload();
  } else if (method == "POST" && path.starts_with("load/")) {
    done = administration_.load_model(path.substr(5));
  } else if (method == "POST" && path.starts_with("unload/")) {
    done = administration_.unload_model(path.substr(7));
  }
  if (!done) co_return co_await reply_error(exchange, done.error(), ReplyHeaders(exchange));
  co_await reply_json(exchange, 202, R"({"status":"accepted"})", ReplyHeaders(exchange));
}

}  // namespace molly::server
