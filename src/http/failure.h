#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "core/error.h"

namespace molly::http {

// How an exchange with a server failed, so that fallback, circuit breakers and people can tell them apart.
enum class FailureKind : std::uint8_t {
  not_permitted,       // permit, payload, target or address do not agree: nothing was sent
  busy,                // every connection that the pool may hold is in use
  refused,             // nobody listens, or no way there
  dns,                 // the name has no address, or the resolver failed or was too slow
  tls,                 // handshake failed, certificate or pinned key is wrong
  connect_timeout,     // no connection in time (including TLS)
  write_timeout,       // the peer did not take the request in time
  first_byte_timeout,  // no byte of the response in time
  idle_stall,          // the response stopped for longer than the idle deadline
  reset,               // the connection broke before the response's first byte, or by a reset
  truncated,           // the response ended early
  garbage,             // what came is not HTTP, or a redirect, or an encoding that was not asked for
  head_too_large,      // the response's head is over the limit
  cancelled,           // our own side gave up
};

// "first_byte_timeout", for metrics and records.
std::string_view to_string(FailureKind kind);

struct Failure {
  FailureKind kind = FailureKind::reset;
  std::string message;  // a sentence for people, without content or secret
  // As the error that a client gets when no other target is left: upstream_failed, timeout, cancelled,
  // overloaded (busy) or forbidden (not_permitted).
  Error error() const;
  bool operator==(const Failure&) const = default;
};

template <class T>
using Attempt = std::expected<T, Failure>;

// With the kind's own sentence, or `detail`.
std::unexpected<Failure> failed(FailureKind kind, std::string detail = {});

}  // namespace molly::http
