#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/section.h"

namespace molly::server {

// [server] of molly.toml.
//
//   listen, socket, tls = { certificate, key }, threads, max_header_bytes, max_body_bytes, max_connections,
//   max_in_flight, header_seconds, body_seconds, idle_seconds, write_seconds, drain_seconds, allowed_hosts,
//   allowed_origins
struct ServerSettings {
  std::vector<std::string> listen{"127.0.0.1:7411"};  // ADDRESS:PORT; port 0: the system chooses
  std::string socket;                                 // unix socket; empty: <data>/run/molly.sock
  std::string tls_certificate;                        // path of a PEM file; empty: no TLS
  std::string tls_key;                                // path of a PEM file
  std::uint32_t threads = 2;
  std::uint64_t max_header_bytes = 64 * 1024;
  std::uint64_t max_body_bytes = 32 * 1024 * 1024;
  std::uint32_t max_connections = 1024;
  std::uint32_t max_in_flight = 512;  // requests being served at a time; above: 429
  std::chrono::milliseconds header_deadline{10'000};
  std::chrono::milliseconds body_deadline{30'000};
  std::chrono::milliseconds idle_deadline{75'000};
  std::chrono::milliseconds write_deadline{30'000};
  std::chrono::milliseconds drain_deadline{20'000};
  std::vector<std::string> allowed_hosts;
  std::vector<std::string> allowed_origins;
};

ServerSettings read_server(config::Section root);

// "127.0.0.1:80", "[::1]:80", "localhost:80": host and port, or nothing.
struct Address {
  std::string host;
  std::uint16_t port = 0;
};
std::optional<Address> parse_address(std::string_view text);
bool is_loopback(std::string_view host);

}  // namespace molly::server
