#pragma once

#include <chrono>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace molly {

// What went wrong, as a client or an operator must tell it apart. Each code maps to one HTTP status
// and one error type per dialect (see wire/openai.h).
enum class ErrorCode {
  invalid_request,          // 400: the request cannot be understood or asks for what cannot be done
  unsupported_parameter,    // 400: understood, but no cleared target can honour it
  context_length_exceeded,  // 400: no cleared target is long enough
  unauthenticated,          // 401: no key, or one that is not known
  forbidden,                // 403: policy refused; the message names each target and the rule
  not_found,                // 404: no such model, trace or path
  method_not_allowed,       // 405
  timeout,                  // 408: the client was too slow, or 504 when a target was
  conflict,                 // 409
  payload_too_large,        // 413
  header_too_large,         // 431
  rate_limited,             // 429: carries retry_after
  overloaded,               // 503: carries retry_after
  unavailable,              // 503: no cleared target is in service
  upstream_failed,          // 502: the target failed and no other cleared one was left
  cancelled,                // 499: the client left
  config_invalid,           // configuration was refused; in-process only
  io_failed,                // disk or socket; in-process only
  internal,                 // 500: a bug of ours
};

std::string_view to_string(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;  // a sentence for people: what happened and what to do; never holds a secret or content
  std::string field;    // the request field or configuration key at fault, empty when there is none
  std::optional<std::chrono::milliseconds> retry_after = std::nullopt;

  bool operator==(const Error&) const = default;
};

template <class T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> failure(ErrorCode code, std::string message, std::string field = {}) {
  return std::unexpected(Error{code, std::move(message), std::move(field)});
}

}  // namespace molly
