#include "http/stream.h"

#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/write.hpp>
#include <string>

#include "http/remaining.h"

namespace molly::http {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr auto as_values = asio::as_tuple(asio::deferred);

// A TLS record per buffer would be two writes for a head and its body: what is small is joined first.
asio::awaitable<error_code> write_tls(TlsSocket& tls, std::span<const asio::const_buffer> buffers) {
  constexpr std::size_t join_below = 16 << 10;
  if (buffers.size() > 1 && asio::buffer_size(buffers) <= join_below) {
    std::string joined;
    joined.reserve(asio::buffer_size(buffers));
    for (const auto& buffer : buffers) joined.append(static_cast<const char*>(buffer.data()), buffer.size());
    auto [error, size] = co_await asio::async_write(tls, asio::buffer(joined), as_values);
    co_return error;
  }
  for (const asio::const_buffer& buffer : buffers) {
    auto [error, size] = co_await asio::async_write(tls, buffer, as_values);
    if (error) co_return error;
  }
  co_return error_code{};
}

}  // namespace

Stream::Stream(Socket socket) : layer_(std::move(socket)) {}

Stream::Stream(Socket socket, TlsContext& context) : layer_(std::make_unique<TlsSocket>(std::move(socket), context)) {}

Socket& Stream::socket() {
  auto* plain = std::get_if<Socket>(&layer_);
  return plain != nullptr ? *plain : std::get<std::unique_ptr<TlsSocket>>(layer_)->next_layer();
}

TlsSocket* Stream::tls() {
  auto* layered = std::get_if<std::unique_ptr<TlsSocket>>(&layer_);
  return layered != nullptr ? layered->get() : nullptr;
}

asio::io_context& Stream::context() { return socket().get_executor().context(); }

std::size_t Stream::write_now(std::span<const asio::const_buffer> buffers, error_code& error) {
  Socket& plain = std::get<Socket>(layer_);
  return buffers.size() == 1 ? plain.write_some(buffers.front(), error) : plain.write_some(buffers, error);
}

asio::awaitable<error_code> Stream::write(std::span<const asio::const_buffer> buffers) {
  if (auto* layered = tls()) co_return co_await write_tls(*layered, buffers);
  Remaining remaining(buffers);
  while (!remaining.empty()) {
    error_code error;
    std::size_t size = write_now(remaining.left(), error);
    if (error == asio::error::would_block) {
      std::tie(error, size) = co_await socket().async_write_some(remaining.left(), as_values);
    }
    if (error) co_return error;
    remaining.consume(size);
  }
  co_return error_code{};
}

asio::awaitable<std::pair<error_code, std::size_t>> Stream::read(asio::mutable_buffer into) {
  if (auto* layered = tls()) {
    auto [error, size] = co_await layered->async_read_some(into, as_values);
    co_return std::pair(error, size);
  }
  auto [error, size] = co_await socket().async_read_some(into, as_values);
  co_return std::pair(error, size);
}

void Stream::end_writing() {
  error_code ignored;
  socket().shutdown(Socket::shutdown_send, ignored);
}

void Stream::close() {
  error_code ignored;
  socket().close(ignored);
}

Result<Socket> adopt_socket(asio::io_context& context, int descriptor) {
  int domain = 0;
  socklen_t size = sizeof domain;
  if (::getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0) {
    return failure(ErrorCode::io_failed, "the descriptor is not a socket");
  }
  Socket socket(context);
  error_code error;
  socket.assign(asio::generic::stream_protocol(domain, 0), descriptor, error);
  if (!error) socket.non_blocking(true, error);
  if (error) return failure(ErrorCode::io_failed, "the socket cannot be used: " + error.message());
  return socket;
}

Result<std::shared_ptr<TlsContext>> server_tls(std::string_view certificate_pem, std::string_view key_pem) {
  auto context = std::make_shared<TlsContext>(TlsContext::tls_server);
  error_code error;
  context->set_options(TlsContext::no_tlsv1 | TlsContext::no_tlsv1_1 | TlsContext::no_compression, error);
  if (!error) context->use_certificate_chain(asio::buffer(certificate_pem), error);
  if (error) return failure(ErrorCode::config_invalid, "the TLS certificate cannot be used: " + error.message());
  context->use_private_key(asio::buffer(key_pem), TlsContext::pem, error);
  if (!error && ::SSL_CTX_check_private_key(context->native_handle()) != 1) {
    return failure(ErrorCode::config_invalid, "the TLS key does not belong to the certificate");
  }
  if (error) return failure(ErrorCode::config_invalid, "the TLS key cannot be used: " + error.message());
  return context;
}

}  // namespace molly::http
