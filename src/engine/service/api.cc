#include "engine/service/api.h"

#include <boost/asio/this_coro.hpp>
#include <chrono>

#include "engine/service/generate.h"
#include "wire/json_reader.h"
#include "wire/openai.h"

namespace molly::engine {
namespace {

namespace asio = boost::asio;

constexpr http::Header json_type{"content-type", "application/json"};

std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

wire::AnswerIdentity identity(const Engine& engine, Endpoint endpoint) {
  static std::atomic<std::uint64_t> number{0};
  return {(endpoint == Endpoint::chat ? "chatcmpl-" : "cmpl-") + std::to_string(number.fetch_add(1)), unix_seconds(),
          engine.options().name};
}

asio::awaitable<void> respond_json(http::Exchange& exchange, unsigned status, std::string_view body) {
  static_cast<void>(co_await exchange.respond(status, {json_type}, body));
}

asio::awaitable<void> respond_error(http::Exchange& exchange, const Error& error) {
  const std::string body = wire::render_error(error);
  const auto status = static_cast<unsigned>(wire::http_status(error.code));
  if (!error.retry_after) co_return co_await respond_json(exchange, status, body);
  const auto seconds = std::to_string(std::chrono::ceil<std::chrono::seconds>(*error.retry_after).count());
  static_cast<void>(co_await exchange.respond(status, {json_type, {"retry-after", seconds}}, body));
}

asio::awaitable<void> stream(http::Exchange& exchange, Generation& generation, std::vector<Event> events,
                             wire::ChunkRenderer renderer) {
  if (!exchange.start_stream(200, {{"content-type", "text/event-stream"}, {"cache-control", "no-cache"}})) co_return;
  while (true) {
    std::string bytes;
    bool ended = false;
    for (const Event& event : events) {
      bytes += renderer.render(event);
      ended = ended || std::holds_alternative<Done>(event) || std::holds_alternative<Failed>(event);
    }
    if (ended) {
      static_cast<void>(co_await exchange.finish(bytes));
      co_return;
    }
    if (!bytes.empty() && !co_await exchange.write(bytes)) co_return;
    events = co_await generation.next();
  }
}

asio::awaitable<void> whole(http::Exchange& exchange, Generation& generation, std::vector<Event> events,
                            Endpoint endpoint, wire::AnswerIdentity identity) {
  wire::AnswerBuilder builder(endpoint);
  while (true) {
    for (Event& event : events) builder.add(std::move(event));
    if (builder.error()) co_return co_await respond_error(exchange, *builder.error());
    if (builder.done()) co_return co_await respond_json(exchange, 200, builder.render(identity));
    events = co_await generation.next();
  }
}

struct AdapterFile {
  std::string name;
  std::string path;
};

Result<AdapterFile> read_adapter_file(std::string_view body) {
  AdapterFile out;
  wire::JsonReader in(body);
  in.object([&](std::string_view key) {
    if (key == "name") {
      out.name = in.string();
    } else if (key == "path") {
      out.path = in.string();
    } else {
      in.fail("is not known here");
    }
  });
  in.expect_end();
  if (!in.ok()) return failure(ErrorCode::invalid_request, in.path() + " " + in.problem(), in.path());
  if (out.name.empty() || out.path.empty()) {
    return failure(ErrorCode::invalid_request, "an adapter needs a name and a path",
                   out.name.empty() ? "name" : "path");
  }
  return out;
}

Result<std::string> prefetch_json(Engine& engine, std::string_view body) {
  std::string name;
  wire::JsonReader in(body);
  in.object([&](std::string_view key) {
    if (key != "name") return in.fail("is not known here");
    name = in.string();
  });
  in.expect_end();
  if (!in.ok()) return failure(ErrorCode::invalid_request, in.path() + " " + in.problem(), in.path());
  if (auto done = engine.prefetch_adapter(name); !done) return std::unexpected(done.error());
  return R"({"status":"accepted"})";
}

Result<std::string> push_draft_json(Engine& engine, std::string_view body) {
  std::string channel;
  std::uint64_t position = 0;
  std::vector<Token> tokens;
  wire::JsonReader in(body);
  in.object([&](std::string_view key) {
    if (key == "channel") {
      channel = in.string();
    } else if (key == "position") {
      position = in.unsigned_integer(UINT32_MAX);
    } else if (key == "tokens") {
      in.array([&](std::uint32_t) {
        tokens.push_back(static_cast<Token>(in.unsigned_integer(engine.vocabulary().size() - 1)));
      });
    } else {
      in.fail("is not known here");
    }
  });
  in.expect_end();
  if (!in.ok()) return failure(ErrorCode::invalid_request, in.path() + " " + in.problem(), in.path());
  engine.push_draft(std::move(channel), static_cast<std::uint32_t>(position), std::move(tokens));
  return R"({"status":"accepted"})";
}

Result<std::string> remove_json(Engine& engine, std::string_view name) {
  if (auto removed = engine.remove_adapter(name); !removed) return std::unexpected(removed.error());
  return R"({"status":"removed"})";
}

}  // namespace

bool Api::may_ask(const http::Exchange& exchange) const {
  if (key_.empty()) return true;
  constexpr std::string_view scheme = "Bearer ";
  const auto header = exchange.header("authorization").value_or("");
  return header.starts_with(scheme) && key_ == base::Secret(header.substr(scheme.size()));
}

asio::awaitable<void> Api::handle(http::Exchange& exchange) {
  const std::string_view path = exchange.path();
  const std::string_view method = exchange.method();
  if (method == "GET" && path == "/health") co_return co_await respond_json(exchange, 200, R"({"status":"ok"})");
  if (!may_ask(exchange)) {
    co_return co_await respond_error(exchange,
                                     {ErrorCode::unauthenticated, "the engine's key is wrong or missing", ""});
  }
  if (method == "GET" && path == "/metrics") {
    const std::string text = metrics_text(engine_.status());
    static_cast<void>(co_await exchange.respond(200, {{"content-type", "text/plain; version=0.0.4"}}, text));
    co_return;
  }
  if (method == "GET") co_return co_await answer(exchange, get(path));
  constexpr std::string_view adapters = "/adapters/";
  if (method == "DELETE" && path.starts_with(adapters)) {
    co_return co_await answer(exchange, remove_json(engine_, path.substr(adapters.size())));
  }
  if (method != "POST") {
    co_return co_await respond_error(exchange, {ErrorCode::method_not_allowed, "this takes GET, POST or DELETE", ""});
  }
  if (path == "/v1/chat/completions") co_return co_await generate(exchange, Endpoint::chat);
  if (path == "/v1/completions") co_return co_await generate(exchange, Endpoint::completions);
  if (path == "/v1/embeddings") co_return co_await embed(exchange);
  co_await answer(exchange, post(path, exchange.body()));
}

asio::awaitable<void> Api::answer(http::Exchange& exchange, const Result<std::string>& json) {
  if (!json) co_return co_await respond_error(exchange, json.error());
  co_await respond_json(exchange, 200, *json);
}

Result<std::string> Api::get(std::string_view path) {
  if (path == "/v1/models") {
    const std::array entries{wire::ModelEntry{.id = engine_.options().name, .owned_by = "molly-engine", .extra = {}}};
    return wire::render_model_list(entries);
  }
  if (path == "/adapters") return adapters_json(engine_.adapters());
  return failure(ErrorCode::not_found, "there is nothing at GET " + std::string(path.substr(0, 200)));
}

Result<std::string> Api::post(std::string_view path, std::string_view body) {
  if (path == "/tokenize") return tokenize_json(engine_, body);
  if (path == "/detokenize") return detokenize_json(engine_, body);
  if (path == "/apply-template") return apply_template_json(engine_, body);
  if (path == "/v1/chat/completions/input_tokens") return count_json(engine_, body);
  if (path == "/drafts") return push_draft_json(engine_, body);
  if (path == "/adapters/prefetch") return prefetch_json(engine_, body);
  if (path == "/adapters") {
    const auto wanted = read_adapter_file(body);
    if (!wanted) return std::unexpected(wanted.error());
    const auto added = engine_.add_adapter(wanted->name, wanted->path);
    if (!added) return std::unexpected(added.error());
    return R"({"status":"added"})";
  }
  return failure(ErrorCode::not_found, "there is nothing at POST " + std::string(path.substr(0, 200)));
}

asio::awaitable<void> Api::generate(http::Exchange& exchange, Endpoint endpoint) {
  const auto request = endpoint == Endpoint::chat ? wire::parse_chat_request(exchange.body())
                                                  : wire::parse_completion_request(exchange.body());
  if (!request) co_return co_await respond_error(exchange, request.error());
  auto generation = Generation::begin(engine_, *request, co_await asio::this_coro::executor);
  if (!generation) co_return co_await respond_error(exchange, generation.error());
  auto events = co_await (*generation)->next();
  // What goes wrong before the first token has its own status, streamed or not.
  if (const auto* failed = std::get_if<Failed>(&events.back()))
    co_return co_await respond_error(exchange, failed->error);
  const auto named = identity(engine_, endpoint);
  if (!request->stream) co_return co_await whole(exchange, **generation, std::move(events), endpoint, named);
  const auto usage =
      request->include_usage.value_or(false) ? wire::UsageInStream::asked : wire::UsageInStream::not_asked;
  co_await stream(exchange, **generation, std::move(events), wire::ChunkRenderer(endpoint, named, usage));
}

}  // namespace molly::engine
