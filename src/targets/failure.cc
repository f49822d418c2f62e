#include "targets/failure.h"

namespace molly::targets {

std::string_view to_string(FailureKind kind) {
  switch (kind) {
    case FailureKind::none: return "none";
    case FailureKind::refused: return "refused";
    case FailureKind::dns: return "dns";
    case FailureKind::tls: return "tls";
    case FailureKind::connect_timeout: return "connect_timeout";
    case FailureKind::first_byte_timeout: return "first_byte_timeout";
    case FailureKind::stall: return "stall";
    case FailureKind::reset: return "reset";
    case FailureKind::truncated: return "truncated";
    case FailureKind::garbage: return "garbage";
    case FailureKind::rate_limited: return "rate_limited";
    case FailureKind::server_error: return "server_error";
    case FailureKind::bad_credentials: return "bad_credentials";
    case FailureKind::denied: return "denied";
    case FailureKind::rejected: return "rejected";
    case FailureKind::too_long: return "too_long";
    case FailureKind::busy: return "busy";
    case FailureKind::not_ready: return "not_ready";
    case FailureKind::circuit_open: return "circuit_open";
    case FailureKind::unproven: return "unproven";
    case FailureKind::unauthorised: return "unauthorised";
  }
  return "none";
}

bool may_fall_back(FailureKind kind) { return kind != FailureKind::rejected && kind != FailureKind::none; }

bool counts_against_target(FailureKind kind) {
  switch (kind) {
    case FailureKind::none:
    case FailureKind::denied:
    case FailureKind::rejected:
    case FailureKind::too_long:
    case FailureKind::busy:
    case FailureKind::circuit_open:
    case FailureKind::rate_limited:
    case FailureKind::unauthorised: return false;
    default: return true;
  }
}

}  // namespace molly::targets
