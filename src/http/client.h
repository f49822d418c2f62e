#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "http/failure.h"
#include "http/header.h"
#include "http/stream.h"

namespace molly::http {

struct ClientLimits {
  std::size_t max_head_bytes = 64 << 10;
  std::size_t read_bytes = 16 << 10;  // at most this much of the body comes from one read_some()
};

struct ClientDeadlines {
  std::chrono::milliseconds write{30'000};        // for the peer to take the whole request
  std::chrono::milliseconds first_byte{120'000};  // from the request's last byte to the response's first
  std::chrono::milliseconds idle{60'000};         // between bytes of the response
};

struct ResponseHead {
  unsigned status = 0;
  HeaderList headers;
};

// The request's head, rendered: request line, Host, the headers, Content-Length (for anything but a GET
// without a body). Fails (internal) where a part may not stand there.
Result<std::string> request_head(std::string_view method, std::string_view target, std::string_view host,
                                 std::span<const Header> headers, std::optional<std::uint64_t> body_size);

// One HTTP/1.1 connection of a client: send(), read_head(), read_some() until the end, and again. On one
// thread, one request at a time, no pipelining. Interim responses (1xx) are skipped. A cancelled operation
// fails with FailureKind::cancelled and leaves the connection unusable.
class Client {
 public:
  explicit Client(Stream stream, ClientLimits limits = {});
  ~Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  // Head and body in one gathered write; both must live until the result is there. Where the peer answers
  // and closes before it has taken all, that answer can still be read.
  boost::asio::awaitable<Attempt<void>> send(std::string_view head, std::string_view body,
                                             const ClientDeadlines& deadlines);
  // For HEAD, call it with `without_body`.
  enum class Body : std::uint8_t { as_announced, none };
  boost::asio::awaitable<Attempt<ResponseHead>> read_head(Body body = Body::as_announced);
  // Some bytes of the body, transfer encoding removed; empty at its end. Valid until the next call.
  // A body that ends early is a failure (truncated), never an end.
  boost::asio::awaitable<Attempt<std::string_view>> read_some();
  // Everything that is left, or (garbage) when it is more than `limit`.
  boost::asio::awaitable<Attempt<std::string>> read_all(std::size_t limit);

  // The response was read to its end and the connection may carry another request.
  bool reusable() const;
  // The peer closed it, or sent something unasked: do not reuse. One system call, does not block.
  bool stale();
  // No byte of the response has come since send().
  bool nothing_received() const;
  std::uint64_t requests_sent() const;
  Stream& stream();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace molly::http
