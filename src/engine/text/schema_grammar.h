#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "engine/text/grammar_rules.h"
#include "engine/text/json_value.h"
#include "engine/text/number_grammar.h"

namespace molly::engine {

// Turns one JSON Schema into GBNF. Each function gives the GBNF symbol or group for the values of a schema; after the
// first failure they give empty texts. Where a schema leaves open what JSON Schema would allow, the grammar may allow
// less, never more: no property that is not named, no array longer than its prefixItems.
class SchemaGrammar {
 public:
  // Rules are added to those that are there.
  SchemaGrammar(const JsonValue& root, GrammarRules& rules) : root_(root), rules_(rules) {}
  // What stands for the schema's values; rules are named after `rule`.
  Result<std::string> symbol(std::string_view rule) &&;

 private:
  struct Place {
    std::string path;  // "properties.name"
    std::string rule;  // what to name rules after: "answer-name"
    Place member(std::string_view name) const;
    Place named(std::string_view keyword, std::string_view name) const;
    Place element(std::string_view keyword, std::size_t index) const;
  };
  struct Property {
    std::string name;
    const JsonValue* schema;
    Place place;
  };
  struct ObjectShape {
    std::vector<Property> properties;
    std::set<std::string, std::less<>> required;
    const JsonValue* additional = nullptr;
    std::vector<std::size_t> closed_after;  // how many properties a part that allows no others had named
    Times size;
  };

  // schema_grammar.cc
  std::string values(const JsonValue& schema, const Place& place);
  std::string values_inside(const JsonValue& schema, const Place& place);
  std::string values_of_object(const JsonValue& schema, const Place& place);
  std::string reference(const JsonValue& schema, const Place& place);
  std::string listed(const JsonValue& schema, std::string_view keyword, const Place& place);
  std::string one_of(const JsonValue& schema, std::string_view keyword, const Place& place);
  std::string typed(const JsonValue& schema, const Place& place);
  std::string of_type(std::string_view type, const JsonValue& schema, const Place& place);
  std::vector<std::string> types_of(const JsonValue& schema, const Place& place);
  const JsonValue* target(std::string_view pointer) const;

  // schema_values.cc
  std::string array(const JsonValue& schema, const Place& place);
  std::string string(const JsonValue& schema, const Place& place);
  std::string integer(const JsonValue& schema, const Place& place);
  std::string number(const JsonValue& schema, const Place& place);
  Bounds bounds(const JsonValue& schema, const Place& place);
  std::optional<Bound> bound(const JsonValue& schema, std::string_view keyword, const Place& place);
  Times times(const JsonValue& schema, std::string_view least, std::string_view most, const Place& place);
  std::optional<std::uint64_t> count(const JsonValue& schema, std::string_view keyword, const Place& place);

  // schema_objects.cc
  std::string object(const JsonValue& schema, const Place& place);
  std::string all_of(const JsonValue& schema, const Place& place);
  void add_part(const JsonValue& part, const Place& place, ObjectShape& shape, int depth);
  void add_properties(const JsonValue& part, const Place& place, ObjectShape& shape);
  std::string with_shape(const ObjectShape& shape, const Place& place);
  std::string map_of(const ObjectShape& shape, const Place& place);
  std::string members(const ObjectShape& shape, const std::string& further, const Place& place);
  std::string further_member(const ObjectShape& shape, const Place& place);
  std::string other_key(std::span<const std::u32string> names, std::size_t depth, const Place& place);

  void allow_only(const JsonValue& schema, std::span<const std::string_view> keywords, const Place& place);
  std::string refuse(const Place& place, std::string_view what);
  bool failed() const { return error_.has_value(); }

  const JsonValue& root_;
  GrammarRules& rules_;
  std::map<std::string, std::string, std::less<>> references_;  // by pointer: the rule's name
  std::vector<std::string> unread_;  // references that would be followed again before a character is read
  int depth_ = 0;
  std::size_t visits_ = 0;  // schemas read, one more for each time that an allOf spells one out
  std::optional<Error> error_;
};

}  // namespace molly::engine
