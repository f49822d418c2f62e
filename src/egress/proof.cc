#include "egress/proof.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <unistd.h>

#include <span>

#include "base/os/socket.h"

namespace molly::egress {

namespace ip = boost::asio::ip;

namespace {

std::unexpected<Error> unproven(std::string message) {
  return failure(ErrorCode::forbidden, std::move(message), "tier");
}

ip::address unmapped(const ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) return make_address_v4(ip::v4_mapped, address.to_v6());
  return address;
}

bool is_private(const ip::address& address) {
  if (address.is_v4()) {
    const auto bits = address.to_v4().to_uint();
    return (bits >> 24) == 10 || (bits >> 20) == 0xac1 || (bits >> 16) == 0xc0a8 || (bits >> 16) == 0xa9fe;
  }
  const auto bytes = address.to_v6().to_bytes();
  return (bytes[0] & 0xfe) == 0xfc || address.to_v6().is_link_local();
}

// The bytes of the address in a sockaddr; empty for families without one.
std::span<const std::uint8_t> bytes_of(const sockaddr* address) {
  if (address == nullptr) return {};
  if (address->sa_family == AF_INET) {
    const auto* four = reinterpret_cast<const sockaddr_in*>(address);
    return {reinterpret_cast<const std::uint8_t*>(&four->sin_addr), sizeof four->sin_addr};
  }
  if (address->sa_family == AF_INET6) {
    const auto* six = reinterpret_cast<const sockaddr_in6*>(address);
    return {reinterpret_cast<const std::uint8_t*>(&six->sin6_addr), sizeof six->sin6_addr};
  }
  return {};
}

bool same_net(std::span<const std::uint8_t> left, std::span<const std::uint8_t> right,
              std::span<const std::uint8_t> mask) {
  if (left.size() != right.size() || left.size() != mask.size() || mask.empty() || mask[0] == 0) return false;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if ((left[i] & mask[i]) != (right[i] & mask[i])) return false;
  }
  return true;
}

Result<void> check_lan(const Endpoint& endpoint) {
  if (endpoint.scheme == Scheme::unix_socket || endpoint.pin) return {};
  boost::system::error_code error;
  const ip::address address = ip::make_address(endpoint.host, error);
  if (error || unmapped(address).is_loopback() || is_private(unmapped(address))) return {};  // names: at connection
  return unproven("tier T1 needs a private address on the local network, or a pin with https: this one is public");
}

Result<void> check_external(const Endpoint& endpoint, PlainLoopback plain) {
  if (endpoint.scheme == Scheme::https) return {};
  boost::system::error_code error;
  const bool loopback = endpoint.scheme == Scheme::http && ip::make_address(endpoint.host, error).is_loopback();
  if (loopback && plain == PlainLoopback::allowed_at_t3) return {};
  return unproven("tier T3 needs an https URL");
}

}  // namespace

Result<void> check_tier(const Endpoint& endpoint, PlainLoopback plain) {
  if (endpoint.pin && endpoint.scheme != Scheme::https) return unproven("a pin needs an https URL");
  switch (endpoint.tier) {
    case Tier::t0:
      if (endpoint.scheme == Scheme::unix_socket) return {};
      return unproven("tier T0 needs a unix socket of your own (a loopback port counts as T1: it may be a tunnel)");
    case Tier::t1: return check_lan(endpoint);
    case Tier::t2:
      if (endpoint.scheme == Scheme::https && endpoint.pin) return {};
      return unproven("tier T2 needs an https URL and a pin: the server's public key as sha256//BASE64");
    case Tier::t3: return check_external(endpoint, plain);
  }
  return unproven("the tier is not known");
}

Result<void> check_address(const Endpoint& endpoint, const ip::address& address, PlainLoopback plain) {
  const ip::address actual = unmapped(address);
  switch (endpoint.tier) {
    case Tier::t0: return unproven("tier T0 is reached over a unix socket only");
    case Tier::t1:
      if (endpoint.pin || actual.is_loopback() || is_on_link_private(actual)) return {};
      return unproven("tier T1 needs an address on the local network, and this host's is not");
    case Tier::t2:
      if (endpoint.pin) return {};
      return unproven("tier T2 needs a pinned key");
    case Tier::t3:
      if (endpoint.scheme == Scheme::https) return {};
      if (plain == PlainLoopback::allowed_at_t3 && actual.is_loopback()) return {};
      return unproven("tier T3 needs https");
  }
  return unproven("the tier is not known");
}

Result<void> check_socket_file(const Endpoint& endpoint) {
  if (endpoint.tier > Tier::t1) return unproven("a unix socket can be T0 or T1 only");
  if (endpoint.tier == Tier::t1) return {};
  struct stat status{};
  if (::lstat(endpoint.socket.c_str(), &status) != 0) return {};  // connecting says what is wrong
  if (!S_ISSOCK(status.st_mode)) return unproven("tier T0 needs a socket, and this file is none");
  if (status.st_uid != ::geteuid() && status.st_uid != 0) return unproven("tier T0 needs a socket of your own user");
  return {};
}

Result<void> check_socket_peer(const Endpoint& endpoint, int descriptor) {
  if (endpoint.tier == Tier::t1) return {};
  const auto peer = base::peer_credentials(descriptor);
  if (!peer) return unproven("the owner of the socket's listener is not known");
  if (peer->user != ::geteuid() && peer->user != 0) return unproven("tier T0 needs a listener of your own user");
  return {};
}

bool is_on_link_private(const ip::address& address) {
  if (!is_private(address)) return false;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return false;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
  const auto four = address.is_v4() ? address.to_v4().to_bytes() : ip::address_v4::bytes_type{};
  const auto six = address.is_v6() ? address.to_v6().to_bytes() : ip::address_v6::bytes_type{};
  const std::span<const std::uint8_t> wanted =
      address.is_v4() ? std::span<const std::uint8_t>(four) : std::span<const std::uint8_t>(six);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if ((entry->ifa_flags & IFF_UP) == 0) continue;
    if (same_net(wanted, bytes_of(entry->ifa_addr), bytes_of(entry->ifa_netmask))) return true;
  }
  return false;
}

}  // namespace molly::egress
