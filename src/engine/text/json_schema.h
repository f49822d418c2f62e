#pragma once

#include <string>
#include <string_view>

#include "core/error.h"

namespace molly::engine {

// A GBNF grammar for the JSON texts that a JSON Schema (2020-12, the parts that llama-server supports: types,
// properties in order, required, additionalProperties, items, prefixItems, enum, const, anyOf, oneOf, allOf of objects,
// $ref within the schema, string length, pattern, formats date, time, date-time and uuid, integer bounds) allows.
// "{}" is any JSON. invalid_request names the path of what is not supported; nothing is ignored silently but
// annotations.
Result<std::string> grammar_of_schema(std::string_view schema);

// Any JSON object: response_format json_object.
std::string any_object_grammar();

}  // namespace molly::engine
