#pragma once

#include <string>
#include <string_view>

#include "core/error.h"
#include "engine/text/grammar_rules.h"

namespace molly::engine {

// GBNF for the inside of a JSON string that an ECMAScript regular expression matches, the `pattern` of JSON Schema:
// where it is not anchored, anything may stand before or behind. invalid_request says what of it is not supported
// (look-around, back references, anchors within, word boundaries, Unicode properties, flags).
Result<std::string> grammar_of_pattern(std::string_view pattern, GrammarRules& rules);

}  // namespace molly::engine
