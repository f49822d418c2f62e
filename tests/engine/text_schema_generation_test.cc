#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <format>
#include <functional>
#include <regex>
#include <set>

#include "engine/text/json_schema.h"
#include "engine/text/json_value.h"
#include "engine/text/utf8.h"
#include "random_writer.h"

// A model that knows nothing, held by the grammar of a schema: whatever it writes must be what the schema allows.
namespace molly::engine {
namespace {

using Kind = wire::JsonReader::Kind;
using Check = std::function<bool(const JsonValue&)>;

constexpr std::uint32_t rounds = 50;

void expect_written(std::string_view schema, const Check& allowed) {
  const auto grammar = grammar_of_schema(schema);
  ASSERT_TRUE(grammar) << schema << grammar.error().field << grammar.error().message;
  for (std::uint32_t seed = 0; seed < rounds; ++seed) {
    const std::string text = written({.grammar = *grammar}, seed);
    const auto value = parse_json(text);
    ASSERT_TRUE(value || value.error().message == "is given twice") << schema << "\n" << text << "\n" << *grammar;
    if (!value) continue;
    ASSERT_TRUE(allowed(*value)) << schema << "\n" << text << "\n" << *grammar;
  }
}

double number(const JsonValue& value) { return value.is(Kind::number) ? std::stod(value.text) : NAN; }

bool is_whole(const JsonValue& value, double least, double most) {
  const bool digits = value.is(Kind::number) && value.text.find_first_of(".eE") == std::string::npos;
  return digits && number(value) >= least && number(value) <= most;
}

std::size_t length(const JsonValue& value) {
  std::size_t count = 0;
  for (std::string_view rest = value.text; !rest.empty(); ++count) rest.remove_prefix(first_code_point(rest).length);
  return count;
}

Check matches(const std::string& pattern) {
  return [expression = std::regex(pattern)](const JsonValue& value) {
    return value.is(Kind::string) && std::regex_match(value.text, expression);
  };
}

Check kind(Kind wanted) {
  return [wanted](const JsonValue& value) { return value.is(wanted); };
}

TEST(TextSchemaGeneration, any_json_and_any_object) {
  expect_written("{}", [](const JsonValue&) { return true; });
  expect_written(R"({"type": "object"})", kind(Kind::object));
  expect_written(R"({"type": "array"})", kind(Kind::array));
  expect_written(R"({"type": "string"})", kind(Kind::string));
  expect_written(R"({"type": ["boolean", "null"]})",
                 [](const JsonValue& value) { return value.is(Kind::boolean) || value.is(Kind::null); });
}

TEST(TextSchemaGeneration, whole_numbers_keep_their_bounds) {
  const std::pair<int, int> bounds[] = {{0, 9},     {7, 7},   {0, 255},     {-128, 127},  {-20, -11},
                                        {98, 1002}, {-5, 12}, {1000, 1999}, {-999, -100}, {5, 1234567}};
  for (const auto& [least, most] : bounds) {
    expect_written(std::format(R"({{"type": "integer", "minimum": {}, "maximum": {}}})", least, most),
                   [&](const JsonValue& value) { return is_whole(value, least, most); });
  }
  expect_written(R"({"type": "integer", "exclusiveMinimum": 41.5})",
                 [](const JsonValue& value) { return is_whole(value, 42, 1e16); });
  expect_written(R"({"type": "integer", "maximum": -3})",
                 [](const JsonValue& value) { return is_whole(value, -1e16, -3); });
}

TEST(TextSchemaGeneration, decimal_numbers_keep_their_bounds) {
  const auto between = [](double least, double most) {
    return [=](const JsonValue& value) { return number(value) >= least && number(value) <= most; };
  };
  expect_written(R"({"type": "number"})", kind(Kind::number));
  expect_written(R"({"type": "number", "minimum": 0, "maximum": 1})", between(0, 1));
  expect_written(R"({"type": "number", "minimum": -90, "maximum": 90.0})", between(-90, 90));
  expect_written(R"({"type": "number", "minimum": -20, "maximum": -11})", between(-20, -11));
  expect_written(R"({"type": "number", "maximum": 5})", between(-1e17, 5));
  expect_written(R"({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1})",
                 [](const JsonValue& value) { return number(value) > 0 && number(value) < 1; });
  expect_written(R"({"type": "number", "exclusiveMinimum": -2, "exclusiveMaximum": -1})",
                 [](const JsonValue& value) { return number(value) > -2 && number(value) < -1; });
}

TEST(TextSchemaGeneration, strings_keep_length_pattern_and_format) {
  expect_written(R"({"type": "string", "minLength": 3, "maxLength": 6})", [](const JsonValue& value) {
    return value.is(Kind::string) && length(value) >= 3 && length(value) <= 6;
  });
  expect_written(R"({"type": "string", "maxLength": 0})", [](const JsonValue& value) { return value.text.empty(); });
  expect_written(R"({"type": "string", "pattern": "^[A-Z]{2}-\\d+(\\.\\d{1,2})?$"})",
                 matches("[A-Z]{2}-[0-9]+(\\.[0-9]{1,2})?"));
  expect_written(R"({"type": "string", "pattern": "^(?:\"|\\\\|a|b)+$"})", matches("[\"\\\\ab]+"));
  expect_written(R"({"type": "string", "pattern": "[\\]}][^a-z]"})",
                 [](const JsonValue& value) { return std::regex_search(value.text, std::regex("[\\]}][^a-z]")); });
  expect_written(R"({"type": "string", "format": "date"})",
                 matches("[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"));
  expect_written(R"({"type": "string", "format": "time"})",
                 matches("([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]+)?(Z|[-+][0-9]{2}:[0-9]{2})"));
  expect_written(R"({"type": "string", "format": "date-time"})", matches("[-0-9]{10}T.*(Z|[-+][0-9]{2}:[0-9]{2})"));
  expect_written(R"({"type": "string", "format": "uuid"})",
                 matches("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"));
  expect_written(R"({"type": "string", "format": "email"})", matches("[^@]+@[^@]+"));
  expect_written(R"({"type": "string", "format": "ipv4"})", matches("[0-9]{1,3}(\\.[0-9]{1,3}){3}"));
}

TEST(TextSchemaGeneration, objects_hold_what_is_required_and_nothing_else) {
  const std::string schema = R"({"type": "object", "properties": {
      "first": {"type": "boolean"}, "second": {"enum": ["x", 2]}, "third": {"type": "null"}}, "required": ["second"],
      "additionalProperties": false})";
  std::set<std::string> forms;
  expect_written(schema, [&](const JsonValue& value) {
    std::string names;
    for (const JsonMember& member : value.members) names += member.name + " ";
    forms.insert(names);
    const JsonValue* second = value.find("second");
    return second != nullptr && (second->text == "x" || second->text == "2");
  });
  EXPECT_LE(forms.size(), 4U);
  EXPECT_GE(forms.size(), 3U);
}

TEST(TextSchemaGeneration, further_members_are_not_the_named_ones) {
  expect_written(R"({"type": "object", "properties": {"ab": {"type": "null"}, "a": {"type": "null"}},
                     "additionalProperties": {"type": "boolean"}})",
                 [](const JsonValue& value) {
                   for (const auto& [name, member] : value.members) {
                     const bool named = name == "a" || name == "ab";
                     if (!member.is(named ? Kind::null : Kind::boolean)) return false;
                   }
                   return value.is(Kind::object);
                 });
  expect_written(
      R"({"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 2, "maxProperties": 3})",
      [](const JsonValue& value) { return value.members.size() == 2 || value.members.size() == 3; });
}

TEST(TextSchemaGeneration, arrays_keep_their_items_and_length) {
  expect_written(R"({"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 4})",
                 [](const JsonValue& value) {
                   return value.elements.size() >= 2 && value.elements.size() <= 4 &&
                          std::ranges::all_of(value.elements, kind(Kind::boolean));
                 });
  expect_written(
      R"({"type": "array", "prefixItems": [{"type": "null"}, {"type": "boolean"}]})", [](const JsonValue& value) {
        return value.elements.size() == 2 && value.elements[0].is(Kind::null) && value.elements[1].is(Kind::boolean);
      });
  expect_written(
      R"({"prefixItems": [{"type": "null"}], "items": {"type": "boolean"}, "maxItems": 3})",
      [](const JsonValue& value) { return value.elements.size() <= 3 && value.elements.front().is(Kind::null); });
  expect_written(R"({"type": "array", "maxItems": 0})", [](const JsonValue& value) { return value.elements.empty(); });
}

TEST(TextSchemaGeneration, unions_references_and_joined_objects) {
  expect_written(
      R"({"anyOf": [{"type": "null"}, {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]}]})",
      [](const JsonValue& value) { return value.is(Kind::null) || value.find("a")->text == "1"; });
  expect_written(
      R"({"$defs": {"tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/leaf"},
                     "right": {"oneOf": [{"$ref": "#/$defs/tree"}, {"$ref": "#/$defs/leaf"}]}}, "required": ["left", "right"]},
                     "leaf": {"type": "integer", "minimum": 1, "maximum": 3}}, "$ref": "#/$defs/tree"})",
      [](const JsonValue& value) { return is_whole(*value.find("left"), 1, 3) && value.find("right") != nullptr; });
  expect_written(
      R"({"allOf": [{"$ref": "#/$defs/base"}, {"properties": {"b": {"type": "null"}}, "required": ["b"]}],
                     "$defs": {"base": {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}}})",
      [](const JsonValue& value) { return value.find("a")->is(Kind::boolean) && value.find("b")->is(Kind::null); });
}

}  // namespace
}  // namespace molly::engine
