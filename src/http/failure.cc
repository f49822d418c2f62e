#include "http/failure.h"

namespace molly::http {
namespace {

struct KindText {
  std::string_view name;
  std::string_view sentence;
};

constexpr KindText text_of(FailureKind kind) {
  switch (kind) {
    case FailureKind::not_permitted:
      return {"not_permitted", "the permit does not cover this request: nothing was sent"};
    case FailureKind::busy: return {"busy", "every connection to the target is in use"};
    case FailureKind::refused: return {"refused", "the target refused the connection"};
    case FailureKind::dns: return {"dns", "the target's host name could not be resolved"};
    case FailureKind::tls: return {"tls", "the TLS handshake with the target failed"};
    case FailureKind::connect_timeout: return {"connect_timeout", "the target did not accept a connection in time"};
    case FailureKind::write_timeout: return {"write_timeout", "the target did not take the request in time"};
    case FailureKind::first_byte_timeout: return {"first_byte_timeout", "the target did not begin to answer in time"};
    case FailureKind::idle_stall: return {"idle_stall", "the target's answer stopped for too long"};
    case FailureKind::reset: return {"reset", "the target broke the connection"};
    case FailureKind::truncated: return {"truncated", "the target's answer ended early"};
    case FailureKind::garbage: return {"garbage", "the target's answer is not valid HTTP"};
    case FailureKind::head_too_large: return {"head_too_large", "the head of the target's answer is too large"};
    case FailureKind::cancelled: return {"cancelled", "the request was cancelled"};
  }
  return {"unknown", "the target failed"};
}

constexpr ErrorCode code_of(FailureKind kind) {
  switch (kind) {
    case FailureKind::not_permitted: return ErrorCode::forbidden;
    case FailureKind::busy: return ErrorCode::overloaded;
    case FailureKind::cancelled: return ErrorCode::cancelled;
    case FailureKind::connect_timeout:
    case FailureKind::write_timeout:
    case FailureKind::first_byte_timeout:
    case FailureKind::idle_stall: return ErrorCode::timeout;
    default: return ErrorCode::upstream_failed;
  }
}

}  // namespace

std::string_view to_string(FailureKind kind) { return text_of(kind).name; }

Error Failure::error() const { return {code_of(kind), message, {}}; }

std::unexpected<Failure> failed(FailureKind kind, std::string detail) {
  if (detail.empty()) detail = text_of(kind).sentence;
  return std::unexpected(Failure{kind, std::move(detail)});
}

}  // namespace molly::http
