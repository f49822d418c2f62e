#include "egress/local.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <charconv>

#include "http/client.h"

namespace molly::egress {

namespace asio = boost::asio;

namespace {

constexpr std::size_t most_body_bytes = 64 << 20;

std::unexpected<Error> no_server() {
  return failure(ErrorCode::unavailable, "no Molly server answers here: start one with `molly serve`");
}

// The descriptor, or -1 with errno.
int connect_to(int family, const sockaddr* address, socklen_t size) {
  const int descriptor = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return -1;
  if (::connect(descriptor, address, size) == 0) return descriptor;
  const int error = errno;
  ::close(descriptor);
  errno = error;
  return -1;
}

Result<int> connect_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return failure(ErrorCode::invalid_request, "the socket's path is too long");
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int descriptor = connect_to(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (descriptor >= 0) return descriptor;
  if (errno == EACCES) return failure(ErrorCode::forbidden, "the server's socket belongs to another user");
  return no_server();
}

Result<int> connect_loopback(const std::string& where) {
  const std::size_t colon = where.rfind(':');
  sockaddr_in address{};
  address.sin_family = AF_INET;
  std::uint16_t port = 0;
  const bool parsed = colon != std::string::npos &&
                      ::inet_pton(AF_INET, where.substr(0, colon).c_str(), &address.sin_addr) == 1 &&
                      std::from_chars(where.data() + colon + 1, where.data() + where.size(), port).ec == std::errc();
  if (!parsed || (ntohl(address.sin_addr.s_addr) >> 24) != 127) {
    return failure(ErrorCode::invalid_request, "the server's address must be a socket's path or 127.0.0.1:PORT");
  }
  address.sin_port = htons(port);
  const int descriptor = connect_to(AF_INET, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  return descriptor >= 0 ? Result<int>(descriptor) : no_server();
}

asio::awaitable<Result<LocalAnswer>> exchange(http::Client client, const LocalRequest& request, const OnBody& on_body) {
  std::vector<http::Header> headers;
  for (const auto& [name, value] : request.headers) headers.push_back({name, value});
  std::optional<std::uint64_t> size;
  if (!request.body.empty() || request.method != "GET") size = request.body.size();
  const auto head = http::request_head(request.method, request.path, "localhost", headers, size);
  if (!head) co_return std::unexpected(head.error());
  const http::ClientDeadlines deadlines{.first_byte = request.idle, .idle = request.idle};
  if (auto sent = co_await client.send(*head, request.body, deadlines); !sent) {
    co_return std::unexpected(sent.error().error());
  }
  auto answered =
      co_await client.read_head(request.method == "HEAD" ? http::Client::Body::none : http::Client::Body::as_announced);
  if (!answered) co_return std::unexpected(answered.error().error());
  LocalAnswer answer{answered->status, std::move(answered->headers), {}};
  for (;;) {
    const auto piece = co_await client.read_some();
    if (!piece) co_return std::unexpected(piece.error().error());
    if (piece->empty()) co_return answer;
    if (on_body) {
      if (!on_body(answer.status, *piece)) co_return answer;
    } else if (answer.body.size() + piece->size() > most_body_bytes) {
      co_return failure(ErrorCode::upstream_failed, "the server's answer is too long");
    } else {
      answer.body.append(*piece);
    }
  }
}

}  // namespace

Result<LocalAnswer> ask_local(const std::string& where, const LocalRequest& request, const OnBody& on_body) {
  const auto descriptor = where.starts_with('/') ? connect_socket(where) : connect_loopback(where);
  if (!descriptor) return std::unexpected(descriptor.error());
  asio::io_context context(1);
  auto socket = http::adopt_socket(context, *descriptor);
  if (!socket) return std::unexpected(socket.error());
  Result<LocalAnswer> result = failure(ErrorCode::internal, "the exchange did not end");
  asio::co_spawn(context, exchange(http::Client(http::Stream(std::move(*socket))), request, on_body),
                 [&](const std::exception_ptr& thrown, Result<LocalAnswer> answer) {
                   if (thrown) std::rethrow_exception(thrown);
                   result = std::move(answer);
                 });
  context.run();
  return result;
}

}  // namespace molly::egress
