#pragma once

#include <cerrno>
#include <string>
#include <system_error>

#include "core/error.h"

namespace molly::base {

// "cannot WHAT: No such file or directory", from errno or the given number.
inline std::unexpected<Error> system_failure(const std::string& what, int number = errno) {
  return failure(ErrorCode::io_failed, "cannot " + what + ": " + std::generic_category().message(number));
}

}  // namespace molly::base
