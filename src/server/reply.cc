#include "server/reply.h"

#include "core/ids.h"
#include "wire/openai.h"

namespace molly::server {
namespace {

constexpr std::size_t max_request_id = 128;

bool is_retryable(ErrorCode code) {
  switch (code) {
    case ErrorCode::timeout:
    case ErrorCode::conflict:
    case ErrorCode::rate_limited:
    case ErrorCode::overloaded:
    case ErrorCode::unavailable:
    case ErrorCode::upstream_failed:
    case ErrorCode::internal: return true;
    default: return false;
  }
}

}  // namespace

ReplyHeaders::ReplyHeaders(const http::Exchange& exchange) {
  const auto given = exchange.header("x-request-id");
  const bool usable = given && !given->empty() && given->size() <= max_request_id && http::is_header_value(*given);
  add("x-request-id", usable ? std::string(*given) : "req_" + TraceId::generate().text().substr(3));
}

std::vector<http::Header> ReplyHeaders::view() const {
  std::vector<http::Header> out;
  out.reserve(entries_.size());
  for (const Entry& entry : entries_) out.push_back({entry.name, entry.value});
  return out;
}

boost::asio::awaitable<void> reply_json(http::Exchange& exchange, unsigned status, std::string body,
                                        ReplyHeaders headers) {
  headers.add("content-type", "application/json");
  const auto all = headers.view();
  // A client that left needs no answer, and there is nobody else to tell.
  static_cast<void>(co_await exchange.respond(status, all, body));
}

boost::asio::awaitable<void> reply_error(http::Exchange& exchange, const Error& error, ReplyHeaders headers) {
  if (error.retry_after) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(*error.retry_after);
    headers.add("retry-after", std::to_string(std::max<std::int64_t>(seconds.count(), 1)));
    headers.add("retry-after-ms", std::to_string(error.retry_after->count()));
  }
  if (!is_retryable(error.code)) headers.add("x-should-retry", "false");
  if (error.code == ErrorCode::unauthenticated) headers.add("www-authenticate", "Bearer");
  const auto status = static_cast<unsigned>(wire::http_status(error.code));
  co_await reply_json(exchange, status, wire::render_error(error), std::move(headers));
}

}  // namespace molly::server
