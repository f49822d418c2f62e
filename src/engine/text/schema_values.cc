#include <algorithm>
#include <charconv>
#include <cmath>
#include <format>

#include "engine/text/pattern_grammar.h"
#include "engine/text/schema_grammar.h"

// Arrays, strings and numbers.
namespace molly::engine {
namespace {

using Kind = wire::JsonReader::Kind;

constexpr double farthest_bound = 1e15;
constexpr std::uint64_t most_count = std::uint64_t{1} << 31;

constexpr std::string_view formats[] = {"date",  "time", "date-time", "duration", "uuid",
                                        "email", "uri",  "hostname",  "ipv4",     "ipv6"};

std::uint64_t less(std::uint64_t count, std::uint64_t by) { return count > by ? count - by : 0; }

Times fewer(Times times, std::uint64_t by) {
  return {less(times.least, by), times.most ? std::optional(less(*times.most, by)) : std::nullopt};
}

std::optional<Bound> tighter_least(std::optional<Bound> left, std::optional<Bound> right) {
  if (!left || !right) return left ? left : right;
  if (left->value != right->value) return left->value > right->value ? left : right;
  return left->exclusive ? left : right;
}

std::optional<Bound> mirrored(std::optional<Bound> bound) {
  if (bound) bound->value = -bound->value;
  return bound;
}

std::optional<Bound> tighter_most(std::optional<Bound> left, std::optional<Bound> right) {
  return mirrored(tighter_least(mirrored(left), mirrored(right)));
}

bool names_type(const JsonValue& schema, std::string_view type) {
  const JsonValue* types = schema.find("type");
  if (types == nullptr) return false;
  if (types->text == type) return true;
  for (const JsonValue& one : types->elements) {
    if (one.text == type) return true;
  }
  return false;
}

}  // namespace

std::string SchemaGrammar::array(const JsonValue& schema, const Place& place) {
  if (const JsonValue* unique = schema.find("uniqueItems"); unique != nullptr && !unique->is_false()) {
    return refuse(place.member("uniqueItems"), "is not supported");
  }
  const Times length = times(schema, "minItems", "maxItems", place);
  const JsonValue* prefix = schema.find("prefixItems");
  if (prefix != nullptr && !prefix->is(Kind::array)) return refuse(place.member("prefixItems"), "must be a list");
  const std::size_t given = prefix == nullptr ? 0 : prefix->elements.size();
  const JsonValue* items = schema.find("items");
  const bool closed = items != nullptr ? items->is_false() : given > 0 && length.least <= given;
  if (closed && length.least > given) return refuse(place.member("minItems"), "asks for more items than are allowed");

  std::string inside;
  for (std::size_t index = 0; index < given && (!length.most || index < *length.most); ++index) {
    const std::string value = values_inside(prefix->elements[index], place.element("prefixItems", index));
    inside += (index == 0 ? "" : R"( ws "," ws )") + value;
  }
  const Times further = fewer(length, given);
  if (!closed && further.most != 0) {
    const std::string item = items == nullptr
                                 ? rules_.json("value")
                                 : values_inside(*items, {place.member("items").path, place.rule + "-item"});
    const std::string next = std::format(R"((ws "," ws {}))", item);
    if (given > 0) {
      inside += " " + repeated(rules_, next, further);
    } else {
      const Times behind_first = fewer(further, 1);
      inside = item + (behind_first.most == 0 ? "" : " " + repeated(rules_, next, behind_first));
    }
  }
  rules_.json("ws");
  if (inside.empty()) return rules_.add(place.rule, R"("[" ws "]")");
  const bool may_be_empty = given == 0 && length.least == 0;
  return rules_.add(place.rule,
                    std::format(R"("[" ws {} "]")", may_be_empty ? "(" + inside + " ws)?" : inside + " ws"));
}

std::string SchemaGrammar::string(const JsonValue& schema, const Place& place) {
  const JsonValue* pattern = schema.find("pattern");
  const JsonValue* format = schema.find("format");
  const bool bounded = schema.find("minLength") != nullptr || schema.find("maxLength") != nullptr;
  if ((pattern != nullptr) + (format != nullptr) + bounded > 1) {
    return refuse(place, "has more than one of pattern, format and a length, which is not supported");
  }
  const auto quoted = [&](const std::string& inside) {
    return failed() ? std::string() : rules_.add(place.rule, std::format(R"("\"" {} "\"")", inside));
  };
  if (format != nullptr) {
    if (!std::ranges::contains(formats, format->text)) return refuse(place.member("format"), "is not supported");
    return quoted(rules_.json(format->text));
  }
  if (pattern != nullptr) {
    if (!pattern->is(Kind::string)) return refuse(place.member("pattern"), "must be a string");
    const auto inside = grammar_of_pattern(pattern->text, rules_);
    if (!inside) return refuse(place.member("pattern"), inside.error().message);
    return quoted("(" + *inside + ")");
  }
  if (!bounded) return rules_.json("string");
  const Times length = times(schema, "minLength", "maxLength", place);
  return quoted(repeated(rules_, rules_.json("char"), length));
}

std::string SchemaGrammar::integer(const JsonValue& schema, const Place& place) {
  const Bounds range = bounds(schema, place);
  if (!range.least && !range.most) return rules_.json("integer");
  const std::string body = grammar_of_integers(range);
  return body.empty() ? refuse(place, "has bounds that allow no number") : rules_.add(place.rule, body);
}

std::string SchemaGrammar::number(const JsonValue& schema, const Place& place) {
  const Bounds range = bounds(schema, place);
  if (!range.least && !range.most) return rules_.json("number");
  const std::string body = grammar_of_numbers(range);
  return body.empty() ? refuse(place, "has bounds that allow no number") : rules_.add(place.rule, body);
}

Bounds SchemaGrammar::bounds(const JsonValue& schema, const Place& place) {
  return {.least = tighter_least(bound(schema, "minimum", place), bound(schema, "exclusiveMinimum", place)),
          .most = tighter_most(bound(schema, "maximum", place), bound(schema, "exclusiveMaximum", place))};
}

std::optional<Bound> SchemaGrammar::bound(const JsonValue& schema, std::string_view keyword, const Place& place) {
  const JsonValue* given = schema.find(keyword);
  if (given == nullptr) return std::nullopt;
  double value = NAN;
  if (given->is(Kind::number)) std::from_chars(given->text.data(), given->text.data() + given->text.size(), value);
  const auto refused = [&](std::string_view what) {
    refuse(place.member(keyword), what);
    return std::optional<Bound>();
  };
  if (!(std::abs(value) <= farthest_bound)) return refused("must be a number from -1e15 to 1e15");
  const bool lower = keyword.ends_with("inimum");
  const double whole = lower ? std::ceil(value) : std::floor(value);
  if (whole == value) return Bound{static_cast<std::int64_t>(whole), keyword.starts_with("exclusive")};
  if (!names_type(schema, "integer")) return refused("must be a whole number: other bounds are not supported");
  return Bound{static_cast<std::int64_t>(whole), false};
}

Times SchemaGrammar::times(const JsonValue& schema, std::string_view least, std::string_view most, const Place& place) {
  const Times times{count(schema, least, place).value_or(0), count(schema, most, place)};
  if (times.most && *times.most < times.least) refuse(place.member(most), std::format("is less than {}", least));
  return times;
}

std::optional<std::uint64_t> SchemaGrammar::count(const JsonValue& schema, std::string_view keyword,
                                                  const Place& place) {
  const JsonValue* given = schema.find(keyword);
  if (given == nullptr) return std::nullopt;
  std::uint64_t value = 0;
  const char* end = given->text.data() + given->text.size();
  const bool whole = given->is(Kind::number) && std::from_chars(given->text.data(), end, value).ptr == end;
  if (!whole || value > most_count) refuse(place.member(keyword), "must be a whole number from 0 to 2147483648");
  return value;
}

}  // namespace molly::engine
