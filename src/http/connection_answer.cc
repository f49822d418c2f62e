#include <ctime>

#include "http/connection.h"
#include "http/remaining.h"

namespace molly::http {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::size_t joined_body_bytes = 4 << 10;  // copied behind the head rather than gathered
constexpr std::size_t bytes_for_a_second = 16 << 10;

// "Date: Mon, 30 Nov 2026 22:41:40 GMT\r\n", made once a second.
std::string_view date_line() {
  struct Line {
    std::time_t second = 0;
    char text[64] = {};
    std::size_t size = 0;
  };
  thread_local Line line;
  const std::time_t now = std::time(nullptr);
  if (now != line.second) {
    std::tm parts{};
    ::gmtime_r(&now, &parts);
    line.second = now;
    line.size = std::strftime(line.text, sizeof line.text, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &parts);
  }
  return {line.text, line.size};
}

// The headers that the server itself answers for.
bool is_reserved(std::string_view name) {
  return equal_names(name, "content-length") || equal_names(name, "transfer-encoding") ||
         equal_names(name, "connection") || equal_names(name, "date");
}

bool has_no_body(unsigned status) { return status == 204 || status == 304; }

void append_number(std::string& text, std::size_t number) {
  char digits[24];
  text.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

}  // namespace

Result<void> Connection::begin_head(unsigned status, std::span<const Header> headers) {
  if (answer_ != Answer::none) return failure(ErrorCode::internal, "an answer was begun already");
  if (status < 200 || status > 599) return failure(ErrorCode::internal, "the answer's status is not valid");
  out_.assign("HTTP/1.1 ");
  append_number(out_, status);
  out_.append(" ").append(reason_phrase(status)).append("\r\n").append(date_line());
  for (const Header& header : headers) {
    if (is_reserved(header.name) || !is_header_name(header.name) || !is_header_value(header.value)) {
      out_.clear();
      return failure(ErrorCode::internal, "a header of the answer is not valid");
    }
    out_.append(header.name).append(": ").append(header.value).append("\r\n");
  }
  if (shared_->draining) keep_alive_ = false;
  if (!keep_alive_) {
    out_.append("Connection: close\r\n");
  } else if (head().http_1_0) {
    out_.append("Connection: keep-alive\r\n");
  }
  return {};
}

asio::awaitable<Result<void>> Connection::fails(Error error) { co_return std::unexpected(std::move(error)); }

asio::awaitable<Result<void>> Connection::respond(unsigned status, std::span<const Header> headers,
                                                  std::string_view body) {
  if (auto begun = begin_head(status, headers); !begun) return fails(std::move(begun.error()));
  answer_ = Answer::finished;
  if (!has_no_body(status)) {
    out_.append("Content-Length: ");
    append_number(out_, body.size());
    out_.append("\r\n");
  }
  out_.append("\r\n");
  if (without_body_ || has_no_body(status)) body = {};
  if (body.size() <= joined_body_bytes) {
    out_.append(body);
    body = {};
  }
  return send({asio::buffer(out_), asio::const_buffer(body.data(), body.size())});
}

Result<void> Connection::start_stream(unsigned status, std::span<const Header> headers) {
  chunked_ = !head().http_1_0;
  if (!chunked_) keep_alive_ = false;
  if (auto begun = begin_head(status, headers); !begun) return begun;
  answer_ = Answer::streaming;
  out_.append(chunked_ ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n");
  return {};
}

asio::awaitable<Result<void>> Connection::write(std::string_view bytes) {
  if (answer_ != Answer::streaming) return fails({ErrorCode::internal, "no stream was begun", {}});
  if (without_body_) bytes = {};
  const asio::const_buffer content(bytes.data(), bytes.size());
  if (!chunked_ || bytes.empty()) return send({asio::buffer(out_), content});
  char* end = std::to_chars(chunk_line_, chunk_line_ + 20, bytes.size(), 16).ptr;
  *end++ = '\r';
  *end++ = '\n';
  return send({asio::buffer(out_), asio::buffer(chunk_line_, static_cast<std::size_t>(end - chunk_line_)), content,
               asio::buffer("\r\n", 2)});
}

asio::awaitable<Result<void>> Connection::finish(std::string_view last) {
  if (answer_ != Answer::streaming) return fails({ErrorCode::internal, "no stream was begun", {}});
  answer_ = Answer::finished;
  if (without_body_) return send({asio::buffer(out_)});
  const asio::const_buffer content(last.data(), last.size());
  if (!chunked_) return send({asio::buffer(out_), content});
  static constexpr std::string_view end = "\r\n0\r\n\r\n";
  if (last.empty()) return send({asio::buffer(out_), asio::buffer(end.substr(2))});
  char* line_end = std::to_chars(chunk_line_, chunk_line_ + 20, last.size(), 16).ptr;
  *line_end++ = '\r';
  *line_end++ = '\n';
  return send({asio::buffer(out_), asio::buffer(chunk_line_, static_cast<std::size_t>(line_end - chunk_line_)), content,
               asio::buffer(end)});
}

asio::awaitable<Result<void>> Connection::send(std::array<asio::const_buffer, 4> buffers) {
  Remaining remaining(buffers);
  if (stream_.tls() == nullptr && !remaining.empty()) {
    error_code error;
    remaining.consume(stream_.write_now(remaining.left(), error));
    if (error && error != asio::error::would_block) co_return std::unexpected(write_error());
  }
  if (!remaining.empty()) {
    const auto size = asio::buffer_size(remaining.left());
    deadline_.arm(shared_->options.limits.write_timeout + std::chrono::seconds(size / bytes_for_a_second));
    const error_code error = co_await stream_.write(remaining.left());
    deadline_.disarm();
    if (error) co_return std::unexpected(write_error());
  }
  out_.clear();
  co_return Result<void>();
}

Error Connection::write_error() {
  if (expired_) return {ErrorCode::timeout, "the client did not take the answer in time", {}};
  ended_ = true;
  return {ErrorCode::cancelled, "the client left", {}};
}

}  // namespace molly::http
