#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>

#include "egress/door.h"

namespace molly::egress {

// Opens connections for one door: the address is proven for the tier before the first packet, the peer again
// after it. One for each io_context.
class Connector {
 public:
  Connector(boost::asio::io_context& context, DoorOptions options);

  // Name, TCP and TLS within the endpoint's connect deadline.
  boost::asio::awaitable<http::Attempt<http::Client>> connect(const Endpoint& endpoint);

 private:
  struct Race;

  boost::asio::awaitable<http::Attempt<http::Stream>> connect_stream(const Endpoint& endpoint, Race& race);
  boost::asio::awaitable<http::Attempt<http::Socket>> connect_unix(const Endpoint& endpoint, Race& race);
  boost::asio::awaitable<http::Attempt<http::Socket>> connect_network(const Endpoint& endpoint, Race& race);
  boost::asio::awaitable<http::Attempt<std::vector<boost::asio::ip::address>>> resolve(const Endpoint& endpoint,
                                                                                       Race& race);
  boost::asio::awaitable<http::Attempt<http::Socket>> connect_address(const Endpoint& endpoint,
                                                                      boost::asio::ip::address address, Race& race);
  boost::asio::awaitable<http::Attempt<http::Stream>> secure(const Endpoint& endpoint, http::Socket socket, Race& race);
  Result<http::TlsContext*> tls_context(const Endpoint& endpoint);

  boost::asio::io_context& context_;
  DoorOptions options_;
  std::unique_ptr<http::TlsContext> verified_;  // certificates checked against authorities
  std::unique_ptr<http::TlsContext> pinned_;    // the key is checked after the handshake
};

}  // namespace molly::egress
