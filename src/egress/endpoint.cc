#include "egress/endpoint.h"

#include <boost/asio/ip/address.hpp>
#include <charconv>

#include "http/header.h"

namespace molly::egress {
namespace {

constexpr std::string_view pin_prefix = "sha256//";

std::unexpected<Error> refused(std::string message) {
  return failure(ErrorCode::config_invalid, std::move(message), "url");
}

int base64_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

// "/v1/" as "/v1", "/" as "".
Result<std::string> clean_path(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  if (!path.empty() && path.front() != '/') return refused("the path of the URL must begin with a slash");
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte >= 0x7f) return refused("the path of the URL holds a character that may not stand there");
  }
  return std::string(path);
}

bool is_host_name(std::string_view host) {
  for (const char c : host) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && c != '-' && c != '.' && c != '_') return false;
  }
  return !host.empty() && host.size() <= 253;
}

Result<void> take_port(Endpoint& endpoint, std::string_view text) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), endpoint.port);
  if (error != std::errc() || end != text.data() + text.size() || endpoint.port == 0) {
    return refused("the port of the URL must be a number from 1 to 65535");
  }
  return {};
}

Result<void> take_authority(Endpoint& endpoint, std::string_view authority) {
  std::string_view host = authority;
  std::string_view port;
  if (authority.starts_with('[')) {
    const std::size_t close = authority.find(']');
    if (close == std::string_view::npos) return refused("the URL's IPv6 address lacks its ']'");
    host = authority.substr(1, close - 1);
    const std::string_view rest = authority.substr(close + 1);
    if (!rest.empty() && rest.front() != ':') return refused("the URL's host is not valid");
    if (!rest.empty()) port = rest.substr(1);
    boost::system::error_code error;
    boost::asio::ip::make_address_v6(std::string(host), error);
    if (error) return refused("the URL's IPv6 address is not valid");
  } else {
    if (const std::size_t colon = authority.rfind(':'); colon != std::string_view::npos) {
      host = authority.substr(0, colon);
      port = authority.substr(colon + 1);
      if (port.empty()) return refused("the URL's port is empty");
    }
    if (!is_host_name(host)) return refused("the URL's host is not valid");
  }
  endpoint.host = host;
  endpoint.port = endpoint.scheme == Scheme::https ? 443 : 80;
  return port.empty() ? Result<void>() : take_port(endpoint, port);
}

Result<void> take_socket(Endpoint& endpoint, std::string_view rest) {
  endpoint.scheme = Scheme::unix_socket;
  const std::size_t colon = rest.find(':');
  endpoint.socket = rest.substr(0, colon);
  if (!rest.starts_with('/')) return refused("unix: needs an absolute path, e.g. unix:/run/model.sock");
  if (endpoint.socket.native().size() > 107) return refused("the socket's path is longer than 107 bytes");
  if (colon == std::string_view::npos) return {};
  auto path = clean_path(rest.substr(colon + 1));
  if (!path) return std::unexpected(path.error());
  endpoint.base_path = *path;
  return {};
}

Result<void> take_network(Endpoint& endpoint, std::string_view rest) {
  const std::size_t slash = rest.find('/');
  const std::string_view authority = rest.substr(0, slash);
  if (authority.find('@') != std::string_view::npos) {
    return refused("a user name or password may not stand in the URL: use `key`");
  }
  if (rest.find_first_of("?#") != std::string_view::npos) return refused("a query or fragment has no place in the URL");
  if (auto taken = take_authority(endpoint, authority); !taken) return taken;
  auto path = clean_path(slash == std::string_view::npos ? std::string_view() : rest.substr(slash));
  if (!path) return std::unexpected(path.error());
  endpoint.base_path = *path;
  return {};
}

}  // namespace

Result<Pin> parse_pin(std::string_view text) {
  const auto bad = failure(ErrorCode::config_invalid, "a pin is written sha256// and 44 characters of base64", "pin");
  if (!text.starts_with(pin_prefix)) return bad;
  text.remove_prefix(pin_prefix.size());
  if (text.size() != 44 || text.back() != '=') return bad;
  Pin pin{};
  std::uint32_t bits = 0;
  unsigned held = 0;
  std::size_t size = 0;
  for (const char c : text.substr(0, 43)) {
    const int value = base64_value(c);
    if (value < 0) return bad;
    bits = (bits << 6) | static_cast<std::uint32_t>(value);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    pin.at(size++) = static_cast<std::uint8_t>(bits >> held);
  }
  if ((bits & 3) != 0) return bad;
  return pin;
}

Result<Endpoint> parse_endpoint(std::string target, Tier tier, std::string_view url) {
  Endpoint endpoint;
  endpoint.target = std::move(target);
  endpoint.tier = tier;
  Result<void> taken;
  if (url.starts_with("unix:")) {
    taken = take_socket(endpoint, url.substr(5));
  } else if (url.starts_with("http://")) {
    endpoint.scheme = Scheme::http;
    taken = take_network(endpoint, url.substr(7));
  } else if (url.starts_with("https://")) {
    endpoint.scheme = Scheme::https;
    taken = take_network(endpoint, url.substr(8));
  } else {
    return refused("a URL begins with http://, https:// or unix:");
  }
  if (!taken) return std::unexpected(taken.error());
  return endpoint;
}

std::string host_header(const Endpoint& endpoint) {
  if (endpoint.scheme == Scheme::unix_socket) return "localhost";
  const bool six = endpoint.host.find(':') != std::string::npos;
  std::string text = six ? "[" + endpoint.host + "]" : endpoint.host;
  if (endpoint.port != (endpoint.scheme == Scheme::https ? 443 : 80)) text += ":" + std::to_string(endpoint.port);
  return text;
}

}  // namespace molly::egress
