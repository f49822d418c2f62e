#pragma once

#include <string_view>

#include "core/error.h"

namespace molly::probes {

// Whether a regular expression matches the whole of `text`: literals, ., classes, \d \w \s and their opposites, groups,
// |, ? * + {n} {n,} {n,m}, and ^ $ at the ends. ASCII; text of at most 62 bytes.
//
// Safe on any pattern: sets of positions instead of backtracking, and a bound on steps. invalid_request: not a pattern
// of these parts, or beyond the bounds.
Result<bool> matches(std::string_view pattern, std::string_view text);

}  // namespace molly::probes
