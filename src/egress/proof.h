#pragma once

#include <boost/asio/ip/address.hpp>
#include <filesystem>

#include "core/error.h"
#include "egress/endpoint.h"

// A tier is checked, not believed:
//   T0  a unix socket whose file and whose listener belong to our own user (or to root): our own child;
//   T1  a unix socket, a loopback address (it may be a tunnel, so it is no T0), a private address on the link
//       of one of our interfaces, or any address behind a pinned key;
//   T2  https with a pinned key;
//   T3  https with a certificate that the system's authorities vouch for, or with a pinned key.
namespace molly::egress {

// Only tests let a plain loopback port play an external API.
enum class PlainLoopback : std::uint8_t { refused, allowed_at_t3 };

// What can be known from the configuration alone. The error's sentence says what would make it right.
Result<void> check_tier(const Endpoint& endpoint, PlainLoopback plain = PlainLoopback::refused);

// At each connection: the address that is about to be, or was, connected to. Reads the interface list.
Result<void> check_address(const Endpoint& endpoint, const boost::asio::ip::address& address,
                           PlainLoopback plain = PlainLoopback::refused);

// At each connection over a unix socket: the file before, the listener (SO_PEERCRED) after connecting.
Result<void> check_socket_file(const Endpoint& endpoint);
Result<void> check_socket_peer(const Endpoint& endpoint, int descriptor);

// A private (RFC 1918, 4193) or link-local address within the netmask of an interface that is up.
bool is_on_link_private(const boost::asio::ip::address& address);

}  // namespace molly::egress
