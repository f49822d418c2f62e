#pragma once

#include <cstdint>
#include <expected>
#include <string_view>

#include "core/error.h"

namespace molly::targets {

// Why an attempt at a target failed, as fallback, circuit breaker and trace must tell it apart.
enum class FailureKind : std::uint8_t {
  none,
  refused,  // nobody listens
  dns,      // the name does not resolve
  tls,      // handshake, certificate or pin
  connect_timeout,
  first_byte_timeout,  // connected, then silence
  stall,               // silence in the middle of an answer
  reset,               // connection cut
  truncated,           // answer ended before its end
  garbage,             // not HTTP, not JSON, not SSE, or a redirect
  rate_limited,        // 429
  server_error,        // 5xx
  bad_credentials,     // 401 or 404 from the target: our configuration is wrong
  denied,              // 403: the target (another Molly, say) may not do it
  rejected,            // 400, 413, 422: the request itself; another target would say the same
  too_long,            // the target says that the context is exceeded
  busy,                // our own limit of requests at a time for this target
  not_ready,           // a model process that could not be started
  circuit_open,        // failing lately; not tried
  unproven,            // the tier could not be proven at connection time
  unauthorised,        // no permit was given out: the audit log cannot be written
};

std::string_view to_string(FailureKind kind);

struct Failure {
  FailureKind kind = FailureKind::none;
  Error error;
  int http_status = 0;  // 0: no HTTP answer
};

// Before the first token another cleared target may be tried.
bool may_fall_back(FailureKind kind);

// Whether the circuit breaker holds it against the target.
bool counts_against_target(FailureKind kind);

template <class T>
using Attempt = std::expected<T, Failure>;

}  // namespace molly::targets
