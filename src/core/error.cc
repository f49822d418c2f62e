#include "core/error.h"

namespace molly {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_request: return "invalid_request";
    case ErrorCode::unsupported_parameter: return "unsupported_parameter";
    case ErrorCode::context_length_exceeded: return "context_length_exceeded";
    case ErrorCode::unauthenticated: return "unauthenticated";
    case ErrorCode::forbidden: return "forbidden";
    case ErrorCode::not_found: return "not_found";
    case ErrorCode::method_not_allowed: return "method_not_allowed";
    case ErrorCode::timeout: return "timeout";
    case ErrorCode::conflict: return "conflict";
    case ErrorCode::payload_too_large: return "payload_too_large";
    case ErrorCode::header_too_large: return "header_too_large";
    case ErrorCode::rate_limited: return "rate_limited";
    case ErrorCode::overloaded: return "overloaded";
    case ErrorCode::unavailable: return "unavailable";
    case ErrorCode::upstream_failed: return "upstream_failed";
    case ErrorCode::cancelled: return "cancelled";
    case ErrorCode::config_invalid: return "config_invalid";
    case ErrorCode::io_failed: return "io_failed";
    case ErrorCode::internal: return "internal";
  }
  return "internal";
}

}  // namespace molly
