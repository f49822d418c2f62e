#include "server/access.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <optional>

namespace molly::server {
namespace {

std::string_view without_port(std::string_view host) {
  if (host.starts_with('[')) {
    const auto end = host.find(']');
    return end == std::string_view::npos ? host : host.substr(0, end + 1);
  }
  return host.substr(0, host.rfind(':'));
}

std::string_view without_brackets(std::string_view host) {
  if (host.starts_with('[') && host.ends_with(']')) return host.substr(1, host.size() - 2);
  return host;
}

bool is_address(std::string_view host) {
  boost::system::error_code failed;
  boost::asio::ip::make_address(std::string(without_brackets(host)), failed);
  return !failed;
}

std::optional<std::string_view> presented_key(const http::Exchange& exchange) {
  if (const auto header = exchange.header("authorization")) {
    constexpr std::string_view scheme = "Bearer ";
    if (header->size() > scheme.size() && http::equal_names(header->substr(0, scheme.size()), scheme)) {
      return header->substr(scheme.size());
    }
  }
  return exchange.header("x-api-key");
}

Result<void> check_source(const http::Exchange& exchange, const AccessRules& rules) {
  const auto host = exchange.header("host").value_or("");
  if (!host_is_ours(host, rules)) {
    return failure(ErrorCode::forbidden,
                   "this Host is not one of ours; if it should be, add it to allowed_hosts in [server]", "Host");
  }
  const auto origin = exchange.header("origin");
  if (origin && !origin_is_ours(*origin, host, rules)) {
    return failure(ErrorCode::forbidden,
                   "web pages of this Origin may not use Molly; if they should, add it to allowed_origins in [server]",
                   "Origin");
  }
  return {};
}

}  // namespace

bool host_is_ours(std::string_view host, const AccessRules& rules) {
  const std::string_view name = without_port(host);
  // Rebinding works through names only: an address in Host is what the client truly connected to.
  if (name == "localhost" || is_address(name)) return true;
  return std::ranges::contains(rules.allowed_hosts, name) || std::ranges::contains(rules.allowed_hosts, host);
}

bool origin_is_ours(std::string_view origin, std::string_view host, const AccessRules& rules) {
  if (std::ranges::contains(rules.allowed_origins, origin)) return true;
  const auto scheme_end = origin.find("://");
  return scheme_end != std::string_view::npos && origin.substr(scheme_end + 3) == host;
}

Result<Identity> identify(const http::Exchange& exchange, const members::Keys& keys, const AccessRules& rules) {
  const http::Peer& peer = exchange.peer();
  if (peer.kind == http::Peer::Kind::unix_socket) return Identity{.key = nullptr, .owner = true};
  if (auto source = check_source(exchange, rules); !source) return std::unexpected(source.error());
  const auto presented = presented_key(exchange);
  const bool local = peer.kind == http::Peer::Kind::loopback;
  if (local && (!presented || !presented->starts_with("molly_"))) return Identity{};
  if (!presented) {
    return failure(ErrorCode::unauthenticated,
                   "requests from other machines need a key: 'molly keys create' makes one, send it as 'Authorization: "
                   "Bearer KEY'");
  }
  auto key = keys.verify(*presented);
  if (!key) return std::unexpected(key.error());
  return Identity{.key = std::move(*key), .owner = false};
}

}  // namespace molly::server
