#include <algorithm>
#include <array>
#include <format>

#include "base/json_writer.h"
#include "engine/text/code_points.h"
#include "engine/text/schema_grammar.h"
#include "engine/text/utf8.h"

// Objects, allOf.
namespace molly::engine {
namespace {

using Kind = wire::JsonReader::Kind;

constexpr int deepest_parts = 32;
constexpr std::size_t longest_name = 128;
constexpr std::string_view comma = R"(ws "," ws )";

constexpr std::array<std::string_view, 8> part_keywords = {
    "type",  "properties",    "required",     "additionalProperties", "unevaluatedProperties",
    "allOf", "minProperties", "maxProperties"};

std::string key_and(const std::string& key, const std::string& value) {
  return std::format(R"({} ws ":" ws {})", key, value);
}

std::u32string code_points(std::string_view text) {
  std::u32string points;
  while (!text.empty()) {
    const CodePoint point = first_code_point(text);
    points += point.value;
    text.remove_prefix(std::max<std::size_t>(point.length, 1));
  }
  return points;
}

}  // namespace

std::string SchemaGrammar::object(const JsonValue& schema, const Place& place) {
  ObjectShape shape;
  add_properties(schema, place, shape);
  return with_shape(shape, place);
}

std::string SchemaGrammar::all_of(const JsonValue& schema, const Place& place) {
  const JsonValue& parts = *schema.find("allOf");
  const bool alone = std::ranges::none_of(
      part_keywords, [&](std::string_view keyword) { return keyword != "allOf" && schema.find(keyword) != nullptr; });
  if (alone && parts.elements.size() == 1) {
    allow_only(schema, part_keywords, place);
    return values(parts.elements.front(), place.element("allOf", 0));
  }
  ObjectShape shape;
  add_part(schema, place, shape, 0);
  for (const std::size_t named : shape.closed_after) {
    if (named != shape.properties.size()) {
      return refuse(place.member("allOf"), "has a part that allows none of the other parts' properties");
    }
  }
  return with_shape(shape, place);
}

void SchemaGrammar::add_part(const JsonValue& part, const Place& place, ObjectShape& shape, int depth) {
  if (depth > deepest_parts) return void(refuse(place, "is nested too deeply"));
  if (part.find("$ref") != nullptr) {
    allow_only(part, std::array{std::string_view("$ref")}, place);
    const std::string& pointer = part.find("$ref")->text;
    const JsonValue* referred = target(pointer);
    if (referred == nullptr) return void(refuse(place.member("$ref"), "must name a part of this schema"));
    return add_part(*referred, {pointer, place.rule}, shape, depth + 1);
  }
  allow_only(part, part_keywords, place);
  const JsonValue* type = part.find("type");
  const bool is_object = part.is(Kind::object) && (type == nullptr || type->text == "object");
  if (!is_object) return void(refuse(place, "is part of an allOf, and only objects are supported there"));
  const JsonValue* parts = part.find("allOf");
  if (parts != nullptr && parts->elements.empty())
    refuse(place.member("allOf"), "must be a list with one schema or more");
  for (std::size_t index = 0; parts != nullptr && index < parts->elements.size() && !failed(); ++index) {
    add_part(parts->elements[index], place.element("allOf", index), shape, depth + 1);
  }
  if (!failed()) add_properties(part, place, shape);
}

void SchemaGrammar::add_properties(const JsonValue& part, const Place& place, ObjectShape& shape) {
  const std::size_t before = shape.properties.size();
  if (const JsonValue* properties = part.find("properties")) {
    if (!properties->is(Kind::object)) return void(refuse(place.member("properties"), "must be an object"));
    for (const auto& [name, schema] : properties->members) {
      const Place here = place.named("properties", name);
      if (std::ranges::contains(shape.properties, name, &Property::name)) {
        return void(refuse(here, "is given by more than one part of an allOf"));
      }
      shape.properties.push_back({name, &schema, here});
    }
  }
  if (const JsonValue* required = part.find("required")) {
    const bool names = required->is(Kind::array) && std::ranges::all_of(required->elements, [](const JsonValue& one) {
                         return one.is(Kind::string);
                       });
    if (!names) return void(refuse(place.member("required"), "must be a list of names"));
    for (const JsonValue& name : required->elements) shape.required.insert(name.text);
  }
  const JsonValue* unevaluated = part.find("unevaluatedProperties");
  if (unevaluated != nullptr && !unevaluated->is_false()) {
    return void(refuse(place.member("unevaluatedProperties"), "is supported only as false"));
  }
  const JsonValue* additional = part.find("additionalProperties");
  if (additional != nullptr && shape.additional != nullptr && to_text(*additional) != to_text(*shape.additional)) {
    return void(refuse(place.member("additionalProperties"), "differs between the parts of an allOf"));
  }
  if (additional != nullptr) shape.additional = additional;
  if (additional != nullptr && !additional->is_true()) shape.closed_after.push_back(shape.properties.size() - before);
  if (additional == nullptr && unevaluated != nullptr && shape.additional == nullptr) shape.additional = unevaluated;
  shape.size = times(part, "minProperties", "maxProperties", place);
}

std::string SchemaGrammar::with_shape(const ObjectShape& given, const Place& place) {
  ObjectShape shape = given;
  static const JsonValue anything{.kind = Kind::boolean, .text = "true", .members = {}, .elements = {}};
  const bool closed = shape.additional != nullptr && shape.additional->is_false();
  for (const std::string& name : shape.required) {
    if (std::ranges::contains(shape.properties, name, &Property::name)) continue;
    if (closed) return refuse(place.member("required"), std::format("asks for \"{}\", which is not allowed", name));
    shape.properties.push_back(
        {name, shape.additional == nullptr ? &anything : shape.additional, place.named("properties", name)});
  }
  if (failed()) return {};
  rules_.json("ws");
  if (shape.properties.empty()) return map_of(shape, place);
  if (shape.size.least > 0 || shape.size.most) {
    return refuse(place, "has properties and bounds on their number, which is not supported");
  }
  const std::string further = shape.additional == nullptr || closed ? "" : further_member(shape, place);
  const std::string inside = members(shape, further, place);
  if (failed()) return {};
  return rules_.add(place.rule, std::format(R"("{{" ws {} "}}")", inside));
}

std::string SchemaGrammar::map_of(const ObjectShape& shape, const Place& place) {
  const bool anything = shape.additional == nullptr || shape.additional->is_true();
  const bool empty = (!anything && shape.additional->is_false()) || shape.size.most == 0;
  if (empty && shape.size.least > 0) return refuse(place.member("minProperties"), "asks for more than is allowed");
  if (empty) return rules_.add(place.rule, R"("{" ws "}")");
  if (anything && shape.size.least == 0 && !shape.size.most) return rules_.json("object");
  const std::string value =
      anything ? rules_.json("value")
               : values_inside(*shape.additional, {place.member("additionalProperties").path, place.rule + "-value"});
  if (failed()) return {};
  const std::string member = rules_.add(place.rule + "-member", key_and(rules_.json("string"), value));
  const Times size = shape.size;
  Times behind_first{size.least > 0 ? size.least - 1 : 0, {}};
  if (size.most) behind_first.most = *size.most - 1;
  const std::string more =
      behind_first.most == 0 ? "" : " " + repeated(rules_, std::format("({}{})", comma, member), behind_first);
  return rules_.add(place.rule, std::format(R"("{{" ws ({}{} ws){} "}}")", member, more, size.least == 0 ? "?" : ""));
}

// The members in order. What follows a member starts with a comma; while all so far were optional and left out, it
// does not: so each optional one before the first required one begins an alternative.
std::string SchemaGrammar::members(const ObjectShape& shape, const std::string& further, const Place& place) {
  const std::size_t count = shape.properties.size();
  const auto required = [&](std::size_t at) { return shape.required.contains(shape.properties[at].name); };
  std::size_t first_required = 0;
  while (first_required < count && !required(first_required)) ++first_required;

  std::vector<std::string> member(count);
  for (std::size_t at = 0; at < count; ++at) {
    const auto& [name, schema, where] = shape.properties[at];
    member[at] = key_and(grammar_literal(base::json_string(name)), values_inside(*schema, where));
  }
  const std::string any_further = further.empty() ? "" : std::format(" ({}{})*", comma, further);
  std::vector<std::string> behind(count + 1);
  behind[count] = any_further;
  for (std::size_t at = count; at-- > 1;) {
    const std::string one = std::string(comma) + member[at];
    behind[at] = (required(at) ? " " + one : " (" + one + ")?") + behind[at + 1];
    if (at <= first_required && at < count) behind[at] = " " + rules_.add(place.rule + "-more", behind[at].substr(1));
  }
  std::string alternatives;
  for (std::size_t at = 0; at <= first_required && at < count; ++at) {
    alternatives += (at == 0 ? "" : " | ") + member[at] + behind[at + 1];
  }
  const bool may_be_empty = first_required == count;
  if (may_be_empty && !further.empty()) alternatives += " | " + further + any_further;
  return std::format("({} ws){}", alternatives.contains(" | ") ? "(" + alternatives + ")" : alternatives,
                     may_be_empty ? "?" : "");
}

std::string SchemaGrammar::further_member(const ObjectShape& shape, const Place& place) {
  std::vector<std::u32string> names;
  for (const Property& property : shape.properties) {
    std::u32string name = code_points(property.name);
    if (name.size() > longest_name) return refuse(property.place, "is too long a name beside additionalProperties");
    names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  const std::string key = std::format(R"("\"" {})", other_key(names, 0, place));
  const Place inside{place.member("additionalProperties").path, place.rule + "-value"};
  return rules_.add(place.rule + "-further", key_and(key, values_inside(*shape.additional, inside)));
}

// The rest of a key that is none of `names`, which are in order and alike up to `depth`; it is spelled without escapes.
std::string SchemaGrammar::other_key(std::span<const std::u32string> names, std::size_t depth, const Place& place) {
  const bool ends_here = !names.empty() && names.front().size() == depth;
  if (ends_here) names = names.subspan(1);
  std::string alternatives = ends_here ? "" : R"("\"" | )";
  CodePoints others = plain_in_json();
  for (std::size_t at = 0; at < names.size();) {
    const char32_t letter = names[at][depth];
    std::size_t end = at;
    while (end < names.size() && names[end][depth] == letter) ++end;
    CodePoints not_letter = CodePoints{{letter, letter}}.complement();
    if (plain_in_json().contains(letter)) {
      others = others.common_with(not_letter);
      const std::string next = other_key(names.subspan(at, end - at), depth + 1, place);
      alternatives += grammar_of_code_points({{letter, letter}}) + " " + next + " | ";
    }
    at = end;
  }
  const std::string plain = grammar_of_code_points(plain_in_json());
  return rules_.add(place.rule + "-key",
                    alternatives + std::format(R"({} {}* "\"")", grammar_of_code_points(others), plain));
}

}  // namespace molly::engine
