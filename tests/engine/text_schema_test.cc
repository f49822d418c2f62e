#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>

#include "engine/text/json_schema.h"
#include "engine/text/sampler.h"
#include "text_model.h"

namespace molly::engine {
namespace {

struct Refusal {
  std::string schema;
  std::string field;
  std::string sentence;
};

std::string first_rule(std::string_view schema) {
  const auto grammar = grammar_of_schema(schema);
  return grammar ? grammar->substr(0, grammar->find('\n')) : grammar.error().field + " " + grammar.error().message;
}

std::string rule(std::string_view schema, std::string_view name) {
  const auto grammar = grammar_of_schema(schema);
  if (!grammar) return grammar.error().field + " " + grammar.error().message;
  const std::size_t at = ("\n" + *grammar).find(std::format("\n{} ::= ", name));
  if (at == std::string::npos) return "no such rule in " + *grammar;
  const std::size_t start = at + name.size() + 5;
  return grammar->substr(start, grammar->find('\n', start) - start);
}

TEST(TextSchema, simple_schemas_are_standard_rules) {
  EXPECT_EQ(first_rule("{}"), "root ::= value");
  EXPECT_EQ(first_rule("true"), "root ::= value");
  EXPECT_EQ(first_rule(R"({"title": "Any", "description": "of it"})"), "root ::= value");
  for (const std::string type : {"string", "number", "integer", "boolean", "null", "object"}) {
    EXPECT_EQ(first_rule(R"({"type": ")" + type + R"("})"), "root ::= " + type);
  }
}

TEST(TextSchema, members_come_in_order_and_optional_ones_may_be_left_out) {
  EXPECT_EQ(
      rule(R"({"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}}, "required": ["a"]})",
           "answer"),
      R"("{" ws ("\"a\"" ws ":" ws null (ws "," ws "\"b\"" ws ":" ws null)? ws) "}")");
  const std::string both = R"({"properties": {"a": {"type": "null"}, "b": {"type": "null"}}})";
  EXPECT_EQ(rule(both, "answer"), R"("{" ws (("\"a\"" ws ":" ws null answer-more | "\"b\"" ws ":" ws null) ws)? "}")");
  EXPECT_EQ(rule(both, "answer-more"), R"((ws "," ws "\"b\"" ws ":" ws null)?)");
}

TEST(TextSchema, lists_of_values_are_their_json) {
  EXPECT_EQ(rule(R"({"enum": ["a\"b", 1.50, null, {"x": [1]}]})", "answer"),
            R"("\"a\\\"b\"" | "1.50" | "null" | "{\"x\":[1]}")");
  EXPECT_EQ(rule(R"({"const": true})", "answer"), R"("true")");
  EXPECT_EQ(rule(R"({"type": "string", "enum": ["a", 1]})", "answer"), R"("\"a\"")");
}

TEST(TextSchema, bounds_of_whole_numbers_are_digits) {
  EXPECT_EQ(rule(R"({"type": "integer", "minimum": 0, "maximum": 255})", "answer"),
            R"([0-9] | [1-9] [0-9] | "1" [0-9]{2} | "2" ([0-4] [0-9] | "5" ([0-5])))");
  EXPECT_EQ(rule(R"({"type": "integer", "exclusiveMaximum": 0, "minimum": -3})", "answer"), R"("-" ([1-3]))");
  EXPECT_EQ(rule(R"({"type": "integer", "minimum": 10})", "answer"), R"([1-9] [0-9] | [1-9] [0-9]{2,15})");
}

TEST(TextSchema, strings_have_lengths_patterns_and_formats) {
  EXPECT_EQ(rule(R"({"type": "string", "minLength": 2, "maxLength": 5})", "answer"), R"("\"" char{2,5} "\"")");
  EXPECT_EQ(rule(R"({"type": "string", "pattern": "^[a-c]+-\\d{3}$"})", "answer"),
            R"("\"" ([a-c]+ [\x2D] [0-9]{3}) "\"")");
  EXPECT_EQ(rule(R"({"type": "string", "pattern": "a\"b"})", "answer"), R"("\"" (char* [a] "\\\"" [b] char*) "\"")");
  EXPECT_EQ(rule(R"({"type": "string", "format": "date"})", "answer"), R"("\"" date "\"")");
}

TEST(TextSchema, references_become_rules_and_may_recur) {
  const std::string list = R"({"$ref": "#/$defs/node", "$defs": {"node": {"type": "object",
      "properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}, "required": ["next"]}}})";
  EXPECT_EQ(first_rule(list), "root ::= node");
  EXPECT_EQ(rule(list, "node-next"), "node | null");
}

TEST(TextSchema, what_is_not_supported_is_named_by_its_path) {
  const Refusal refusals[] = {
      {"{", "", "is not valid JSON"},
      {"[]", "", "must be an object or a boolean"},
      {"false", "", "allows no value"},
      {R"({"type": "text"})", "type", "must name types"},
      {R"({"properties": {"a": {"not": {}}}})", "properties.a.not", "is not supported"},
      {R"({"properties": {"a": {"items": [{}]}}})", "properties.a.items", "must be an object or a boolean"},
      {R"({"items": {"multipleOf": 3}})", "items.multipleOf", "is not supported"},
      {R"({"type": "array", "uniqueItems": true})", "uniqueItems", "is not supported"},
      {R"({"type": "string", "format": "regex"})", "format", "is not supported"},
      {R"_({"type": "string", "pattern": "(?=a)"})_", "pattern", "look-ahead"},
      {R"({"type": "string", "pattern": "(a*)*"})", "pattern", "without end"},
      {R"({"type": "string", "pattern": "\\bword"})", "pattern", "escape"},
      {R"({"type": "string", "minLength": 1, "pattern": "a"})", "", "more than one of"},
      {R"({"type": "string", "minimum": 1})", "minimum", "says nothing about"},
      {R"({"type": "number", "minimum": 0.5})", "minimum", "whole number"},
      {R"({"type": "integer", "minimum": 5, "maximum": 4})", "", "allow no number"},
      {R"({"type": "string", "minLength": 3, "maxLength": 2})", "maxLength", "is less than minLength"},
      {R"({"$ref": "#"})", "#.$ref", "leads back to itself"},
      {R"({"$ref": "http://example.org/schema"})", "$ref", "part of this schema"},
      {R"({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}})", "#/$defs/a.anyOf[0].$ref",
       "leads back"},
      {R"({"enum": []})", "enum", "allows no value"},
      {R"({"anyOf": [{"type": "null"}], "properties": {}})", "properties", "not supported here"},
      {R"({"properties": {}, "required": ["a"], "additionalProperties": false})", "required", "not allowed"},
      {R"({"allOf": [{"type": "string"}, {"type": "object"}]})", "allOf[0]", "only objects"},
      {R"({"allOf": [{"properties": {"a": {}}, "additionalProperties": false}, {"properties": {"b": {}}}]})", "allOf",
       "none of the other"},
      {R"({"type": "object", "type": "object"})", "type", "is given twice"},
  };
  for (const auto& [schema, field, sentence] : refusals) {
    const auto grammar = grammar_of_schema(schema);
    ASSERT_FALSE(grammar) << schema;
    EXPECT_EQ(grammar.error().code, ErrorCode::invalid_request);
    EXPECT_EQ(grammar.error().field, field) << schema;
    EXPECT_THAT(grammar.error().message, testing::HasSubstr(sentence)) << schema;
  }
}

TEST(TextSchema, a_schema_that_multiplies_itself_is_refused) {
  std::string schema = R"({"$ref": "#/$defs/d0", "$defs": {)";
  for (int level = 0; level < 40; ++level) {
    const std::string next = std::format(R"({{"allOf": [{{"$ref": "#/$defs/d{}"}}, {{}}]}})", level + 1);
    schema += std::format(R"("d{}": {{"properties": {{"a": {}, "b": {}}}}}, )", level, next, next);
  }
  schema += R"("d40": {"properties": {}}}})";
  EXPECT_THAT(grammar_of_schema(schema).error().message, testing::HasSubstr("too large"));
  const std::string itself = R"({"properties": {"a": {"allOf": [{"$ref": "#"}, {}]}}})";
  EXPECT_THAT(grammar_of_schema(itself).error().message, testing::HasSubstr("too deeply"));
}

TEST(TextSchema, long_lengths_give_grammars_that_libllama_takes) {
  for (const std::string schema :
       {R"({"type": "string", "maxLength": 5000})", R"({"type": "string", "minLength": 1500, "maxLength": 100000})",
        R"({"type": "string", "minLength": 1200})", R"({"type": "array", "items": {"type": "null"}, "maxItems": 3000})",
        R"({"type": "string", "minLength": 1001, "maxLength": 1005})", R"({"type": "string", "maxLength": 900})"}) {
    const auto grammar = grammar_of_schema(schema);
    ASSERT_TRUE(grammar) << schema;
    EXPECT_TRUE(make_chooser(embedded_vocabulary(), {.grammar = *grammar}, {})) << *grammar;
  }
}

}  // namespace
}  // namespace molly::engine
