#pragma once

#include <string>
#include <string_view>

#include "core/error.h"
#include "engine/text/grammar_rules.h"

namespace molly::engine {

// A GBNF grammar for JSON texts that a JSON Schema (2020-12) allows: types, properties in order, required,
// additionalProperties, items, prefixItems, enum, const, anyOf and oneOf (as anyOf), allOf of objects, $ref within the
// schema, lengths, pattern, formats (date, time, date-time, duration, uuid, email, uri, hostname, ipv4, ipv6), bounds
// of integers and whole bounds of numbers. "{}" is any JSON. The grammar may allow less than the schema, never more: an
// object with properties is closed unless it gives additionalProperties, an array with prefixItems unless it gives
// items. invalid_request names the path of what is not supported; nothing is ignored silently but annotations.
Result<std::string> grammar_of_schema(std::string_view schema);

// The same as part of a larger grammar: the symbol for the texts, whose rules are named after `rule`.
Result<std::string> schema_symbol(GrammarRules& rules, std::string_view schema, std::string_view rule);

}  // namespace molly::engine
