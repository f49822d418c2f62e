#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/error.h"
#include "http/header.h"
#include "http/stream.h"

namespace molly::http {

struct ServerLimits {
  std::size_t max_header_bytes = 64 << 10;
  std::size_t max_body_bytes = 32 << 20;
  std::size_t max_connections = 1024;                // of all servers that share a ConnectionCount
  std::chrono::milliseconds header_timeout{10'000};  // whole head, from its first byte (TLS handshake: the same)
  // Whole body from the end of the head, plus one second for every 16 KiB that came: a slow line may take
  // its time, a client that trickles may not. The same rule holds for writes.
  std::chrono::milliseconds body_timeout{30'000};
  std::chrono::milliseconds idle_timeout{75'000};   // between requests
  std::chrono::milliseconds write_timeout{30'000};  // for the kernel to take what one write hands over
};

struct Peer {
  enum class Kind : std::uint8_t { unix_socket, loopback, remote };
  Kind kind = Kind::remote;
  bool tls = false;
  std::string address;  // "192.168.1.7", "::1"; empty for a unix socket
  std::uint16_t port = 0;
  std::optional<std::uint32_t> user;  // unix socket: who connected
};

class Connection;

// One request and the way to answer it; lives while its handler runs, on one thread. Views into the request
// are valid as long as the handler runs.
//
// When the client leaves, the handler's coroutine is cancelled: the operation it waits for ends with
// operation_aborted, and the next co_await throws (boost::system::system_error). Handlers clean up by their
// destructors and let the exception through. A handler that returns without an answer, or throws before it,
// yields a 500; one that leaves a stream unfinished breaks the connection, so that the client can tell.
class Exchange {
 public:
  explicit Exchange(Connection& connection) : connection_(connection) {}
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  std::string_view method() const;
  std::string_view target() const;  // as the client wrote it
  std::string_view path() const;    // without the query; not percent-decoded; "*" for OPTIONS *
  std::string_view query() const;   // behind the '?', not decoded
  const HeaderList& headers() const;
  std::optional<std::string_view> header(std::string_view name) const { return headers().find(name); }
  std::string_view body() const;  // whole, transfer encoding removed
  const Peer& peer() const;
  bool client_gone() const;
  bool draining() const;

  // A whole answer in one write; Content-Length, Date and Connection are added here. `body` must live until
  // the result is there, the headers only during the call. Fails (cancelled, timeout) when the client left or
  // is too slow, and (internal) when an answer was begun already or a header cannot be sent. For HEAD the body is left
  // out.
  boost::asio::awaitable<Result<void>> respond(unsigned status, std::span<const Header> headers, std::string_view body);
  boost::asio::awaitable<Result<void>> respond(unsigned status, std::initializer_list<Header> headers,
                                               std::string_view body) {
    return respond(status, std::span(headers.begin(), headers.size()), body);
  }

  // A streamed answer: chunked, or until close for HTTP/1.0. The head is kept and goes out together with the
  // first write, flush or finish. Each write completes when the kernel has taken the bytes: that is the
  // backpressure. An empty write does nothing.
  Result<void> start_stream(unsigned status, std::span<const Header> headers);
  Result<void> start_stream(unsigned status, std::initializer_list<Header> headers) {
    return start_stream(status, std::span(headers.begin(), headers.size()));
  }
  boost::asio::awaitable<Result<void>> flush();
  boost::asio::awaitable<Result<void>> write(std::string_view bytes);
  // The end of the stream, with the last bytes in the same write.
  boost::asio::awaitable<Result<void>> finish(std::string_view last = {});

  bool started() const;   // an answer was begun
  bool finished() const;  // a whole answer was handed to the kernel

 private:
  Connection& connection_;
};

using Handler = std::function<boost::asio::awaitable<void>(Exchange&)>;

// The body of an answer that the server itself gives (400, 408, 413, 417, 431, 500, 503): JSON. By default
// in OpenAI's shape.
using ErrorBody = std::function<std::string(unsigned status, std::string_view message)>;
std::string openai_error_body(unsigned status, std::string_view message);

// Shared by the servers of all network threads, so that max_connections holds for the process.
struct ConnectionCount {
  std::atomic<std::size_t> open{0};
};

struct ServerOptions {
  ServerLimits limits;
  Handler handler;
  ErrorBody error_body = openai_error_body;
  // Hears what() of exceptions that left a handler (not of cancellations): bugs, to be logged.
  std::function<void(std::string_view)> on_fault;
  std::shared_ptr<ConnectionCount> count = std::make_shared<ConnectionCount>();
};

struct ServerStatistics {
  std::uint64_t connections = 0;  // accepted so far
  std::uint64_t requests = 0;     // handed to the handler
  std::uint64_t refused = 0;      // answered 503 because of max_connections
  std::uint64_t malformed = 0;    // answered by the server with 4xx
  std::uint64_t timeouts = 0;     // connections ended by a deadline
  std::uint64_t abandoned = 0;    // requests whose client left before the answer was complete
};

// HTTP/1.1 server of one network thread: keep-alive, pipelining, HEAD, Expect: 100-continue, HTTP/1.0,
// chunked request bodies. Everything but active(), connections() and statistics() is called on the io_context's
// thread.
// Destroy it only when the context no longer runs, or when connections() is 0.
class Server {
 public:
  Server(boost::asio::io_context& context, ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Accepts from an open listening descriptor, TCP or unix, which it takes over (and makes non-blocking):
  // several servers that accept from one socket get a dup() each. `tls`: null for plain HTTP.
  Result<void> listen(int descriptor, std::shared_ptr<TlsContext> tls = nullptr);

  // For connections' next requests; streams under way keep the old ones.
  void set_limits(const ServerLimits& limits);

  // No more accepts; idle connections are closed; answers say Connection: close.
  void begin_drain();
  // Cancels every handler and closes every connection.
  void cancel_all();

  std::size_t active() const;       // requests in a handler
  std::size_t connections() const;  // open connections
  ServerStatistics statistics() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace molly::http
