#include "egress/connector.h"

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/steady_timer.hpp>

#include "egress/peer_key.h"
#include "http/deadline.h"

namespace molly::egress {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using http::Attempt;
using http::FailureKind;

namespace {

using Resolver = asio::ip::basic_resolver<tcp, asio::io_context::executor_type>;
using Timer = asio::basic_waitable_timer<std::chrono::steady_clock, asio::wait_traits<std::chrono::steady_clock>,
                                         asio::io_context::executor_type>;
constexpr auto as_values = asio::as_tuple(asio::deferred);
constexpr std::chrono::milliseconds full_backlog_pause{10};

std::unexpected<http::Failure> not_permitted(const Result<void>& refusal) {
  return http::failed(FailureKind::not_permitted, refusal.error().message);
}

}  // namespace

// One connection being made, and the deadline that ends whatever it waits for.
struct Connector::Race {
  Race(asio::io_context& context, std::chrono::milliseconds limit)
      : resolver(context), pause(context), deadline(context, [this] { expire(); }) {
    deadline.arm(limit);
  }
  void expire() {
    expired = true;
    resolver.cancel();
    pause.cancel();
    error_code ignored;
    if (socket != nullptr) socket->close(ignored);
  }
  // `kind`, unless the deadline or a cancellation is the reason.
  std::unexpected<http::Failure> fail(FailureKind kind, const error_code& error) const {
    if (expired) return http::failed(kind == FailureKind::dns ? FailureKind::dns : FailureKind::connect_timeout);
    return http::failed(error == asio::error::operation_aborted ? FailureKind::cancelled : kind);
  }

  Resolver resolver;
  Timer pause;
  http::Socket* socket = nullptr;  // what is being connected or shaking hands
  bool expired = false;
  http::Deadline deadline;
};

Connector::Connector(asio::io_context& context, DoorOptions options)
    : context_(context), options_(std::move(options)) {}

asio::awaitable<Attempt<http::Client>> Connector::connect(const Endpoint& endpoint) {
  if (const auto proven = check_tier(endpoint, options_.plain); !proven) co_return not_permitted(proven);
  Race race(context_, endpoint.connect_deadline);
  auto stream = co_await connect_stream(endpoint, race);
  if (!stream) co_return std::unexpected(std::move(stream.error()));
  co_return http::Client(std::move(*stream), options_.limits);
}

asio::awaitable<Attempt<http::Stream>> Connector::connect_stream(const Endpoint& endpoint, Race& race) {
  auto socket = endpoint.scheme == Scheme::unix_socket ? co_await connect_unix(endpoint, race)
                                                       : co_await connect_network(endpoint, race);
  if (!socket) co_return std::unexpected(std::move(socket.error()));
  if (endpoint.scheme != Scheme::https) co_return http::Stream(std::move(*socket));
  co_return co_await secure(endpoint, std::move(*socket), race);
}

asio::awaitable<Attempt<http::Socket>> Connector::connect_unix(const Endpoint& endpoint, Race& race) {
  if (const auto proven = check_socket_file(endpoint); !proven) co_return not_permitted(proven);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (endpoint.socket.native().size() >= sizeof address.sun_path) co_return http::failed(FailureKind::refused);
  endpoint.socket.native().copy(address.sun_path, sizeof address.sun_path - 1);
  for (;;) {
    const int descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0) co_return http::failed(FailureKind::refused, "no socket could be opened");
    auto socket = http::adopt_socket(context_, descriptor);
    if (!socket) co_return http::failed(FailureKind::refused);
    if (::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      if (const auto proven = check_socket_peer(endpoint, descriptor); !proven) co_return not_permitted(proven);
      co_return std::move(*socket);
    }
    if (errno != EAGAIN) co_return http::failed(FailureKind::refused);
    // The listener's backlog is full, which a unix socket cannot wait for.
    race.pause.expires_after(full_backlog_pause);
    const auto [error] = co_await race.pause.async_wait(as_values);
    if (error || race.expired) co_return race.fail(FailureKind::connect_timeout, error);
  }
}

asio::awaitable<Attempt<std::vector<asio::ip::address>>> Connector::resolve(const Endpoint& endpoint, Race& race) {
  error_code error;
  const asio::ip::address literal = asio::ip::make_address(endpoint.host, error);
  if (!error) co_return std::vector{literal};
  const auto [failed, results] =
      co_await race.resolver.async_resolve(endpoint.host, std::to_string(endpoint.port), as_values);
  if (failed || race.expired) co_return race.fail(FailureKind::dns, failed);
  std::vector<asio::ip::address> addresses;
  for (const auto& entry : results) addresses.push_back(entry.endpoint().address());
  if (addresses.empty()) co_return http::failed(FailureKind::dns);
  co_return addresses;
}

asio::awaitable<Attempt<http::Socket>> Connector::connect_network(const Endpoint& endpoint, Race& race) {
  const auto addresses = co_await resolve(endpoint, race);
  if (!addresses) co_return std::unexpected(addresses.error());
  std::unexpected<http::Failure> last = http::failed(FailureKind::refused);
  for (const asio::ip::address& address : *addresses) {
    if (const auto proven = check_address(endpoint, address, options_.plain); !proven) {
      last = not_permitted(proven);
      continue;
    }
    auto socket = co_await connect_address(endpoint, address, race);
    if (socket) co_return socket;
    last = std::unexpected(std::move(socket.error()));
    if (race.expired || last.error().kind == FailureKind::cancelled) break;
  }
  co_return last;
}

asio::awaitable<Attempt<http::Socket>> Connector::connect_address(const Endpoint& endpoint, asio::ip::address address,
                                                                  Race& race) {
  const tcp::endpoint destination(address, endpoint.port);
  http::Socket socket(context_);
  error_code ignored;
  socket.open(asio::generic::stream_protocol(destination.protocol()), ignored);
  if (!socket.is_open()) co_return http::failed(FailureKind::refused, "no socket could be opened");
  socket.non_blocking(true, ignored);
  race.socket = &socket;
  const auto [error] = co_await socket.async_connect(asio::generic::stream_protocol::endpoint(destination), as_values);
  race.socket = nullptr;
  if (error || race.expired) {
    const bool silent = error == asio::error::timed_out;
    co_return race.fail(silent ? FailureKind::connect_timeout : FailureKind::refused, error);
  }
  const int on = 1;
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  co_return socket;
}

asio::awaitable<Attempt<http::Stream>> Connector::secure(const Endpoint& endpoint, http::Socket socket, Race& race) {
  const auto context = tls_context(endpoint);
  if (!context) co_return http::failed(FailureKind::tls, context.error().message);
  http::Stream stream(std::move(socket), **context);
  http::TlsSocket& tls = *stream.tls();
  error_code error;
  const bool is_address = !asio::ip::make_address(endpoint.host, error).is_unspecified() && !error;
  if (!is_address) ::SSL_set_tlsext_host_name(tls.native_handle(), endpoint.host.c_str());
  if (!endpoint.pin) tls.set_verify_callback(asio::ssl::host_name_verification(endpoint.host));
  race.socket = &stream.socket();
  std::tie(error) = co_await tls.async_handshake(http::TlsSocket::client, as_values);
  race.socket = nullptr;
  if (error || race.expired) co_return race.fail(FailureKind::tls, error);
  if (endpoint.pin && peer_key(tls.native_handle()) != endpoint.pin) {
    co_return http::failed(FailureKind::tls, "the target's public key is not the pinned one");
  }
  co_return stream;
}

Result<http::TlsContext*> Connector::tls_context(const Endpoint& endpoint) {
  auto& context = endpoint.pin ? pinned_ : verified_;
  if (context) return context.get();
  auto made = std::make_unique<http::TlsContext>(http::TlsContext::tls_client);
  error_code error;
  made->set_options(http::TlsContext::no_tlsv1 | http::TlsContext::no_tlsv1_1 | http::TlsContext::no_compression,
                    error);
  static constexpr unsigned char protocols[] = "\x08http/1.1";
  ::SSL_CTX_set_alpn_protos(made->native_handle(), protocols, sizeof protocols - 1);
  made->set_verify_mode(endpoint.pin ? asio::ssl::verify_none : asio::ssl::verify_peer, error);
  if (!endpoint.pin) {
    made->set_default_verify_paths(error);
    if (!options_.further_authorities.empty()) {
      made->add_certificate_authority(asio::buffer(options_.further_authorities), error);
    }
  }
  if (error) return failure(ErrorCode::io_failed, "the certificate authorities cannot be loaded");
  context = std::move(made);
  return context.get();
}

}  // namespace molly::egress
