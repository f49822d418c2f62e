#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl.hpp>
#include <memory>
#include <span>
#include <string_view>
#include <variant>

#include "core/error.h"

namespace molly::http {

// TCP or unix; bound to the io_context's own executor, so that nothing in the hot path is type-erased.
using Socket =
    boost::asio::basic_stream_socket<boost::asio::generic::stream_protocol, boost::asio::io_context::executor_type>;
using TlsSocket = boost::asio::ssl::stream<Socket>;
using TlsContext = boost::asio::ssl::context;

// A connected byte stream, plain or TLS. One read and one write may be under way at a time, all on the
// io_context's thread. Closing or destroying it ends both.
class Stream {
 public:
  explicit Stream(Socket socket);
  // TLS over the socket; the handshake is the caller's to do through tls().
  Stream(Socket socket, TlsContext& context);

  Socket& socket();
  const Socket& socket() const { return const_cast<Stream*>(this)->socket(); }
  // Null for a plain stream.
  TlsSocket* tls();
  boost::asio::io_context& context();

  // Starts a read; `handler(error_code, size)` runs on the context's thread.
  template <class Handler>
  void start_read(boost::asio::mutable_buffer into, Handler handler) {
    if (auto* plain = std::get_if<Socket>(&layer_)) {
      plain->async_read_some(into, std::move(handler));
    } else {
      tls()->async_read_some(into, std::move(handler));
    }
  }

  // Writes everything, or says why not. Returns at once, without suspending, where the kernel takes all.
  boost::asio::awaitable<boost::system::error_code> write(std::span<const boost::asio::const_buffer> buffers);
  boost::asio::awaitable<std::pair<boost::system::error_code, std::size_t>> read(boost::asio::mutable_buffer into);

  // Writes what the kernel takes right now; for a plain stream only. Returns the number of bytes.
  std::size_t write_now(std::span<const boost::asio::const_buffer> buffers, boost::system::error_code& error);

  // Tells the peer that nothing more will come (plain streams: shutdown of the sending side).
  void end_writing();
  void close();

 private:
  std::variant<Socket, std::unique_ptr<TlsSocket>> layer_;
};

// Takes ownership of an open descriptor (TCP or unix, found out from the descriptor).
Result<Socket> adopt_socket(boost::asio::io_context& context, int descriptor);

// A server's TLS context (1.2 and 1.3) from a certificate chain and a private key in PEM.
Result<std::shared_ptr<TlsContext>> server_tls(std::string_view certificate_pem, std::string_view key_pem);

}  // namespace molly::http
