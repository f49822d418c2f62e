#include "engine/service/loading.h"

#include <unistd.h>

#include <algorithm>

#include "base/json_writer.h"
#include "base/os/memory.h"
#include "wire/openai.h"

namespace molly::engine {

namespace asio = boost::asio;

Loading::Loading(std::uint64_t expected_bytes)
    : resident_before_(base::resident_bytes(::getpid())), expected_bytes_(std::max<std::uint64_t>(expected_bytes, 1)) {}

double Loading::progress() {
  constexpr double not_yet = 0.99;
  const std::uint64_t resident = base::resident_bytes(::getpid());
  const std::uint64_t come = resident > resident_before_ ? resident - resident_before_ : 0;
  const double share = static_cast<double>(come) / static_cast<double>(expected_bytes_);
  progress_ = std::max(progress_, std::min(share, not_yet));
  return progress_;
}

asio::awaitable<void> Loading::handle(http::Exchange& exchange) {
  std::string body;
  if (exchange.method() == "GET" && exchange.path() == "/health") {
    base::JsonWriter json;
    body =
        std::move(json.begin_object().member("status", "loading").member("progress", progress()).end_object()).text();
  } else {
    body =
        wire::render_error({ErrorCode::unavailable, "the model is still being loaded: GET /health says how far", ""});
  }
  static_cast<void>(co_await exchange.respond(503, {{"content-type", "application/json"}, {"retry-after", "1"}}, body));
}

}  // namespace molly::engine
