#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "wire/json_reader.h"

namespace molly::engine {

struct JsonMember;

// A whole JSON text as a tree, members in their order and numbers as they were spelled.
struct JsonValue {
  wire::JsonReader::Kind kind = wire::JsonReader::Kind::null;
  std::string text;  // of a string its content, of a number or boolean the spelling
  std::vector<JsonMember> members;
  std::vector<JsonValue> elements;

  const JsonValue* find(std::string_view name) const;
  bool is(wire::JsonReader::Kind other) const { return kind == other; }
  bool is_true() const { return kind == wire::JsonReader::Kind::boolean && text == "true"; }
  bool is_false() const { return kind == wire::JsonReader::Kind::boolean && text == "false"; }
};

struct JsonMember {
  std::string name;
  JsonValue value;
};

// invalid_request where it is no JSON, is nested deeper than 64 levels or gives a member twice; the field is the path.
Result<JsonValue> parse_json(std::string_view text);

// Without white space.
std::string to_text(const JsonValue& value);

}  // namespace molly::engine
