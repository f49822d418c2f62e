#include "engine/text/schema_grammar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <format>
#include <utility>

namespace molly::engine {
namespace {

using Kind = wire::JsonReader::Kind;

constexpr std::size_t most_bytes = std::size_t{2} << 20;
constexpr std::size_t most_visits = 20'000;
constexpr int deepest = 100;

constexpr std::string_view annotations[] = {
    "title",     "description", "default", "examples",        "$schema",
    "$id",       "$comment",    "$defs",   "deprecated",      "readOnly",
    "writeOnly", "definitions", "$anchor", "contentEncoding", "contentMediaType"};

constexpr std::string_view type_names[] = {"object", "array", "string", "number", "integer", "boolean", "null"};

struct Keyword {
  std::string_view name;
  std::string_view type;
};
constexpr Keyword keywords_of_types[] = {
    {"properties", "object"},
    {"required", "object"},
    {"additionalProperties", "object"},
    {"minProperties", "object"},
    {"maxProperties", "object"},
    {"unevaluatedProperties", "object"},
    {"items", "array"},
    {"prefixItems", "array"},
    {"minItems", "array"},
    {"maxItems", "array"},
    {"uniqueItems", "array"},
    {"minLength", "string"},
    {"maxLength", "string"},
    {"pattern", "string"},
    {"format", "string"},
    {"minimum", "number"},
    {"maximum", "number"},
    {"exclusiveMinimum", "number"},
    {"exclusiveMaximum", "number"},
};

bool is_annotation(std::string_view name) { return name.starts_with("x-") || std::ranges::contains(annotations, name); }

bool means(std::string_view keyword_type, std::string_view type) {
  return keyword_type == type || (keyword_type == "number" && type == "integer");
}

std::string_view type_of(const JsonValue& value) {
  switch (value.kind) {
    case Kind::object: return "object";
    case Kind::array: return "array";
    case Kind::string: return "string";
    case Kind::number: return value.text.find_first_of(".eE") == std::string::npos ? "integer" : "number";
    case Kind::boolean: return "boolean";
    case Kind::null:
    case Kind::none: break;
  }
  return "null";
}

// One step of a JSON pointer (RFC 6901), within "#/...".
std::string unescaped_step(std::string_view step) {
  std::string name;
  for (std::size_t at = 0; at < step.size(); ++at) {
    unsigned value = 0;
    if (step.substr(at).starts_with("~1") || step.substr(at).starts_with("~0")) {
      name += step[++at] == '1' ? '/' : '~';
    } else if (step[at] == '%' && at + 2 < step.size() &&
               std::from_chars(&step[at + 1], &step[at] + 3, value, 16).ptr == &step[at] + 3) {
      name += static_cast<char>(value);
      at += 2;
    } else {
      name += step[at];
    }
  }
  return name;
}

const JsonValue* step_into(const JsonValue& value, const std::string& step) {
  if (value.is(Kind::object)) return value.find(step);
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), index);
  const bool valid = error == std::errc() && end == step.data() + step.size() && index < value.elements.size();
  return valid ? &value.elements[index] : nullptr;
}

}  // namespace

SchemaGrammar::Place SchemaGrammar::Place::member(std::string_view name) const {
  return {std::format("{}{}{}", path, path.empty() ? "" : ".", name), rule};
}

SchemaGrammar::Place SchemaGrammar::Place::named(std::string_view keyword, std::string_view name) const {
  return {member(keyword).member(name).path, std::format("{}-{}", rule, name)};
}

SchemaGrammar::Place SchemaGrammar::Place::element(std::string_view keyword, std::size_t index) const {
  return {std::format("{}[{}]", member(keyword).path, index), std::format("{}-{}", rule, index + 1)};
}

Result<std::string> SchemaGrammar::symbol(std::string_view rule) && {
  std::string symbol = values(root_, {"", std::string(rule)});
  if (error_) return std::unexpected(*std::move(error_));
  return symbol;
}

std::string SchemaGrammar::refuse(const Place& place, std::string_view what) {
  if (!error_) error_ = Error{ErrorCode::invalid_request, std::string(what), place.path};
  return {};
}

void SchemaGrammar::allow_only(const JsonValue& schema, std::span<const std::string_view> keywords,
                               const Place& place) {
  for (const auto& [name, value] : schema.members) {
    if (is_annotation(name) || std::ranges::contains(keywords, name)) continue;
    refuse(place.member(name), "is not supported here");
  }
}

std::string SchemaGrammar::values(const JsonValue& schema, const Place& place) {
  if (failed()) return {};
  if (rules_.bytes() > most_bytes || ++visits_ > most_visits) return refuse(place, "makes the schema too large");
  if (depth_ > deepest) return refuse(place, "is nested too deeply");
  if (schema.is_true()) return rules_.json("value");
  if (schema.is_false()) return refuse(place, "allows no value");
  if (!schema.is(Kind::object)) return refuse(place, "must be an object or a boolean");
  ++depth_;
  std::string result = values_of_object(schema, place);
  --depth_;
  return result;
}

std::string SchemaGrammar::values_inside(const JsonValue& schema, const Place& place) {
  std::vector<std::string> outside = std::exchange(unread_, {});
  std::string result = values(schema, place);
  unread_ = std::move(outside);
  return result;
}

std::string SchemaGrammar::values_of_object(const JsonValue& schema, const Place& place) {
  if (schema.find("$ref") != nullptr) return reference(schema, place);
  for (const std::string_view keyword : {"enum", "const"}) {
    if (schema.find(keyword) != nullptr) return listed(schema, keyword, place);
  }
  for (const std::string_view keyword : {"anyOf", "oneOf"}) {
    if (schema.find(keyword) != nullptr) return one_of(schema, keyword, place);
  }
  if (schema.find("allOf") != nullptr) return all_of(schema, place);
  return typed(schema, place);
}

std::string SchemaGrammar::reference(const JsonValue& schema, const Place& place) {
  allow_only(schema, std::array{std::string_view("$ref")}, place);
  const std::string& pointer = schema.find("$ref")->text;
  if (const auto known = references_.find(pointer); known != references_.end()) {
    if (!std::ranges::contains(unread_, pointer)) return known->second;
    return refuse(place.member("$ref"), "leads back to itself");
  }
  const JsonValue* referred = target(pointer);
  if (referred == nullptr) return refuse(place.member("$ref"), "must name a part of this schema, as in #/$defs/name");
  if (failed()) return {};
  const std::string name = rules_.reserve(pointer.substr(std::min(pointer.rfind('/') + 1, pointer.size() - 1)));
  references_[pointer] = name;
  unread_.push_back(pointer);
  rules_.define(name, values(*referred, {pointer, name}));
  unread_.pop_back();
  return name;
}

const JsonValue* SchemaGrammar::target(std::string_view pointer) const {
  if (!pointer.starts_with('#')) return nullptr;
  pointer.remove_prefix(1);
  const JsonValue* at = &root_;
  while (at != nullptr && pointer.starts_with('/')) {
    const std::size_t end = std::min(pointer.find('/', 1), pointer.size());
    at = step_into(*at, unescaped_step(pointer.substr(1, end - 1)));
    pointer.remove_prefix(end);
  }
  return pointer.empty() ? at : nullptr;
}

std::string SchemaGrammar::listed(const JsonValue& schema, std::string_view keyword, const Place& place) {
  allow_only(schema, std::array{keyword, std::string_view("type")}, place);
  const JsonValue& list = *schema.find(keyword);
  if (keyword == "enum" && !list.is(Kind::array)) return refuse(place.member(keyword), "must be a list");
  const std::vector<std::string> types = types_of(schema, place);
  const auto fits = [&](const JsonValue& value) {
    return types.empty() ||
           std::ranges::any_of(types, [&](std::string_view type) { return means(type, type_of(value)); });
  };
  std::string texts;
  for (const JsonValue& value : keyword == "enum" ? std::span(list.elements) : std::span(&list, 1)) {
    if (fits(value)) texts += (texts.empty() ? "" : " | ") + grammar_literal(to_text(value));
  }
  if (texts.empty()) return refuse(place.member(keyword), "allows no value");
  return rules_.add(place.rule, texts);
}

std::string SchemaGrammar::one_of(const JsonValue& schema, std::string_view keyword, const Place& place) {
  allow_only(schema, std::array{keyword}, place);
  const JsonValue& list = *schema.find(keyword);
  if (list.elements.empty()) return refuse(place.member(keyword), "must be a list with one schema or more");
  std::string alternatives;
  for (std::size_t index = 0; index < list.elements.size(); ++index) {
    alternatives += (index == 0 ? "" : " | ") + values(list.elements[index], place.element(keyword, index));
  }
  return rules_.add(place.rule, alternatives);
}

std::vector<std::string> SchemaGrammar::types_of(const JsonValue& schema, const Place& place) {
  const JsonValue* type = schema.find("type");
  if (type == nullptr) return {};
  std::vector<std::string> types;
  for (const JsonValue& one : type->is(Kind::array) ? std::span(type->elements) : std::span(type, 1)) {
    const bool known = one.is(Kind::string) && std::ranges::contains(type_names, one.text);
    if (!known)
      refuse(place.member("type"), "must name types of JSON: object, array, string, number, integer, boolean, null");
    types.push_back(one.text);
  }
  if (types.empty()) refuse(place.member("type"), "allows no value");
  return types;
}

// Without a type, the types that the keywords are about: fewer values than JSON Schema allows.
std::string SchemaGrammar::typed(const JsonValue& schema, const Place& place) {
  std::vector<std::string> types = types_of(schema, place);
  const bool given = !types.empty();
  for (const auto& [name, value] : schema.members) {
    if (is_annotation(name) || name == "type") continue;
    const auto* keyword = std::ranges::find(keywords_of_types, name, &Keyword::name);
    if (keyword == std::end(keywords_of_types)) return refuse(place.member(name), "is not supported");
    const auto about = [&](std::string_view type) { return means(keyword->type, type); };
    if (std::ranges::any_of(types, about)) continue;
    if (given) return refuse(place.member(name), std::format("says nothing about a value of type {}", types.front()));
    types.emplace_back(keyword->type);
  }
  if (failed()) return {};
  if (types.empty()) return rules_.json("value");
  if (types.size() == 1) return of_type(types.front(), schema, place);
  std::string alternatives;
  for (const std::string& type : types) {
    alternatives += (alternatives.empty() ? "" : " | ") + of_type(type, schema, place);
  }
  return rules_.add(place.rule, alternatives);
}

std::string SchemaGrammar::of_type(std::string_view type, const JsonValue& schema, const Place& place) {
  if (type == "object") return object(schema, place);
  if (type == "array") return array(schema, place);
  if (type == "string") return string(schema, place);
  if (type == "integer") return integer(schema, place);
  if (type == "number") return number(schema, place);
  return rules_.json(type);
}

}  // namespace molly::engine
