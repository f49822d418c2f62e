#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/secret.h"
#include "core/error.h"
#include "core/tier.h"
#include "http/client.h"

namespace molly::egress {

// SHA-256 of a server's public key (SubjectPublicKeyInfo in DER).
using Pin = std::array<std::uint8_t, 32>;

// "sha256//BASE64=", as curl writes it.
Result<Pin> parse_pin(std::string_view text);

enum class Scheme : std::uint8_t { http, https, unix_socket };

// Where a target stands and how to reach it. A value; what is sent there also needs a permit for `target`.
struct Endpoint {
  std::string target;  // the target's name, as in its permits
  Tier tier = Tier::t0;
  Scheme scheme = Scheme::http;
  std::string host;  // name or numeric address without brackets; empty for a unix socket
  std::uint16_t port = 0;
  std::string base_path;         // "/v1", without a slash at its end; may be empty
  std::filesystem::path socket;  // of a unix socket
  std::optional<Pin> pin;        // with https: this key and no other; certificates are then not asked for
  base::Secret key;              // sent as "Authorization: Bearer KEY"; empty: not sent
  bool is_molly = false;
  std::size_t connections = 64;  // at a time, for each network thread; one more request fails as busy
  std::chrono::milliseconds connect_deadline{5'000};  // name, TCP and TLS together
  http::ClientDeadlines deadlines;
};

// "http://192.168.1.20:8000/v1", "https://host/v1", "unix:/run/x.sock", "unix:/run/x.sock:/v1" as an endpoint
// of the tier. Fails (config_invalid) with a sentence for people. User names, queries and fragments have no
// place in it. Does not resolve names and does not check the tier: see check_tier in proof.h.
Result<Endpoint> parse_endpoint(std::string target, Tier tier, std::string_view url);

// What stands in the Host header, e.g. "192.168.1.20:8000" or "[::1]:8000".
std::string host_header(const Endpoint& endpoint);

}  // namespace molly::egress
