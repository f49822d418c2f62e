#include "server/settings.h"

#include <boost/asio/ip/address.hpp>
#include <charconv>

namespace molly::server {
namespace {

std::string path_of(config::Section& section, std::string_view key) {
  const std::string value = section.required_text(key);
  constexpr std::string_view prefix = "file:";
  if (value.starts_with(prefix)) return value.substr(prefix.size());
  if (!value.empty()) section.refuse(key, "say file:PATH of a PEM file");
  return {};
}

void read_tls(config::Section& section, ServerSettings& out) {
  config::Section tls = section.table("tls");
  if (!tls.exists()) return;
  out.tls_certificate = path_of(tls, "certificate");
  out.tls_key = path_of(tls, "key");
}

void read_limits(config::Section& section, ServerSettings& out) {
  out.max_header_bytes = section.bytes("max_header_bytes", {1024, 1 << 20}).value_or(out.max_header_bytes);
  out.max_body_bytes = section.bytes("max_body_bytes", {1024, 1ULL << 32}).value_or(out.max_body_bytes);
  const auto count = [&](std::string_view key, std::uint32_t usual) {
    return static_cast<std::uint32_t>(section.integer(key, {1, 1'000'000}).value_or(usual));
  };
  out.max_connections = count("max_connections", out.max_connections);
  out.max_in_flight = count("max_in_flight", out.max_in_flight);
}

void read_deadlines(config::Section& section, ServerSettings& out) {
  const auto deadline = [&](std::string_view key, std::chrono::milliseconds& into) {
    into = section.duration(key, {std::chrono::milliseconds(1), std::chrono::hours(24)}).value_or(into);
  };
  deadline("header_seconds", out.header_deadline);
  deadline("body_seconds", out.body_deadline);
  deadline("idle_seconds", out.idle_deadline);
  deadline("write_seconds", out.write_deadline);
  deadline("drain_seconds", out.drain_deadline);
}

}  // namespace

ServerSettings read_server(config::Section root) {
  ServerSettings out;
  config::Section section = root.table("server");
  if (auto listen = section.texts("listen")) out.listen = std::move(*listen);
  for (const std::string& address : out.listen) {
    if (!parse_address(address)) section.refuse("listen", "'" + address + "' is not ADDRESS:PORT, e.g. 127.0.0.1:7411");
  }
  out.socket = section.text("socket").value_or("");
  read_tls(section, out);
  out.threads = static_cast<std::uint32_t>(section.integer("threads", {1, 256}).value_or(out.threads));
  read_limits(section, out);
  read_deadlines(section, out);
  out.allowed_hosts = section.texts("allowed_hosts").value_or(out.allowed_hosts);
  out.allowed_origins = section.texts("allowed_origins").value_or(out.allowed_origins);
  return out;
}

std::optional<Address> parse_address(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  Address out{.host = std::string(host)};
  if (out.host == "localhost") out.host = "127.0.0.1";
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), out.port);
  if (error != std::errc{} || end != port.data() + port.size()) return std::nullopt;
  boost::system::error_code failed;
  boost::asio::ip::make_address(out.host, failed);
  if (failed) return std::nullopt;
  return out;
}

bool is_loopback(std::string_view host) {
  boost::system::error_code failed;
  const auto address = boost::asio::ip::make_address(host, failed);
  return !failed && address.is_loopback();
}

}  // namespace molly::server
