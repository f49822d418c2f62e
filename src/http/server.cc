#include "http/server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>

#include "base/json_writer.h"
#include "base/os/socket.h"
#include "http/connection.h"

namespace molly::http {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::size_t most_refusing = 128;
constexpr int accepts_in_a_row = 64;
constexpr std::chrono::milliseconds accept_pause{100};  // when descriptors or memory have run out

void set_address(Peer& peer, const asio::ip::address& address, std::uint16_t port) {
  const bool mapped = address.is_v6() && address.to_v6().is_v4_mapped();
  const asio::ip::address plain = mapped ? make_address_v4(asio::ip::v4_mapped, address.to_v6()) : address;
  peer.kind = plain.is_loopback() ? Peer::Kind::loopback : Peer::Kind::remote;
  peer.address = plain.to_string();
  peer.port = port;
}

Peer peer_of(const sockaddr_storage& from, int descriptor) {
  Peer peer;
  if (from.ss_family == AF_INET) {
    sockaddr_in address;
    std::memcpy(&address, &from, sizeof address);
    set_address(peer, asio::ip::address_v4(ntohl(address.sin_addr.s_addr)), ntohs(address.sin_port));
  } else if (from.ss_family == AF_INET6) {
    sockaddr_in6 address;
    std::memcpy(&address, &from, sizeof address);
    asio::ip::address_v6::bytes_type bytes;
    std::memcpy(bytes.data(), &address.sin6_addr, bytes.size());
    set_address(peer, asio::ip::address_v6(bytes, address.sin6_scope_id), ntohs(address.sin6_port));
  } else {
    peer.kind = Peer::Kind::unix_socket;
    if (const auto credentials = base::peer_credentials(descriptor)) peer.user = credentials->user;
  }
  return peer;
}

bool ran_out(int error) { return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM; }

// Accepts from one listening socket.
class Listener : public std::enable_shared_from_this<Listener> {
 public:
  Listener(std::shared_ptr<ServerShared> shared, int descriptor, std::shared_ptr<TlsContext> tls)
      : shared_(std::move(shared)),
        tls_(std::move(tls)),
        descriptor_(shared_->context, descriptor),
        pause_(shared_->context, [this] { wait(); }) {}

  void wait() {
    descriptor_.async_wait(Descriptor::wait_read, [weak = weak_from_this()](const error_code& error) {
      const auto self = weak.lock();
      if (self && !error) self->accept();
    });
  }

 private:
  using Descriptor = asio::posix::basic_stream_descriptor<asio::io_context::executor_type>;

  void accept() {
    for (int i = 0; i < accepts_in_a_row; ++i) {
      sockaddr_storage from{};
      socklen_t size = sizeof from;
      const int client = ::accept4(descriptor_.native_handle(), reinterpret_cast<sockaddr*>(&from), &size,
                                   SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (client >= 0) {
        welcome(client, from);
      } else if (ran_out(errno)) {
        return pause_.arm(accept_pause);
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        break;
      }
    }
    wait();
  }

  void welcome(int client, const sockaddr_storage& from) {
    Peer peer = peer_of(from, client);
    auto socket = adopt_socket(shared_->context, client);
    if (!socket) {
      ::close(client);
      return;
    }
    const int on = 1;
    if (peer.kind != Peer::Kind::unix_socket) ::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    shared_->accepted.add();
    const bool full =
        shared_->options.count->open.load(std::memory_order_relaxed) >= shared_->options.limits.max_connections;
    if (full) shared_->refused.add();
    if (full && (shared_->refusing >= most_refusing || tls_ != nullptr)) return;
    Stream stream = tls_ != nullptr ? Stream(std::move(*socket), *tls_) : Stream(std::move(*socket));
    Connection::start(std::make_shared<Connection>(shared_, std::move(stream), std::move(peer),
                                                   full ? Connection::Welcome::refused : Connection::Welcome::served));
  }

  std::shared_ptr<ServerShared> shared_;
  std::shared_ptr<TlsContext> tls_;
  Descriptor descriptor_;
  Deadline pause_;
};

std::vector<Connection*> snapshot(const ServerShared& shared) {
  return {shared.connections.begin(), shared.connections.end()};
}

}  // namespace

std::string openai_error_body(unsigned status, std::string_view message) {
  base::JsonWriter json;
  json.begin_object().key("error").begin_object();
  const bool clients_fault = status < 500 || status == 505;
  json.member("message", message).member("type", clients_fault ? "invalid_request_error" : "server_error");
  json.key("param").null().key("code").null().end_object().end_object();
  return std::move(json).text();
}

struct Server::State {
  std::shared_ptr<ServerShared> shared;
  std::vector<std::shared_ptr<Listener>> listeners;
};

Server::Server(asio::io_context& context, ServerOptions options)
    : state_(std::make_shared<State>(std::make_shared<ServerShared>(context, std::move(options)))) {}

Server::~Server() {
  state_->listeners.clear();
  for (Connection* connection : snapshot(*state_->shared)) {
    // Letting one go may end others only through a handler's own doing, so each is looked up again.
    if (state_->shared->connections.contains(connection)) connection->abandon();
  }
}

Result<void> Server::listen(int descriptor, std::shared_ptr<TlsContext> tls) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  int listening = 0;
  socklen_t size = sizeof listening;
  if (flags < 0 || ::fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) != 0 ||
      ::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || listening == 0) {
    if (flags >= 0) ::close(descriptor);
    return failure(ErrorCode::io_failed, "the descriptor is not a listening socket");
  }
  auto listener = std::make_shared<Listener>(state_->shared, descriptor, std::move(tls));
  listener->wait();
  state_->listeners.push_back(std::move(listener));
  return {};
}

void Server::set_limits(const ServerLimits& limits) { state_->shared->options.limits = limits; }

void Server::begin_drain() {
  state_->shared->draining = true;
  state_->listeners.clear();
  for (Connection* connection : snapshot(*state_->shared)) {
    if (state_->shared->connections.contains(connection)) connection->close_if_idle();
  }
}

void Server::cancel_all() {
  for (Connection* connection : snapshot(*state_->shared)) {
    if (state_->shared->connections.contains(connection)) connection->cancel();
  }
}

std::size_t Server::active() const { return state_->shared->active.get(); }
std::size_t Server::connections() const { return state_->shared->open.get(); }

ServerStatistics Server::statistics() const {
  const ServerShared& shared = *state_->shared;
  return {shared.accepted.get(),  shared.requests.get(), shared.refused.get(),
          shared.malformed.get(), shared.timeouts.get(), shared.abandoned.get()};
}

}  // namespace molly::http
