#include "training/corpus/html_entity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "engine/text/utf8.h"

namespace molly::training {
namespace {

using Entity = std::pair<std::string_view, char32_t>;

// Those of HTML's 2,231 names that documentation uses.
constexpr std::array<Entity, 58> entities{{
    {"aacute", 0xe1},  {"agrave", 0xe0},  {"amp", '&'},       {"apos", '\''},    {"auml", 0xe4},     {"bull", 0x2022},
    {"ccedil", 0xe7},  {"copy", 0xa9},    {"dagger", 0x2020}, {"darr", 0x2193},  {"deg", 0xb0},      {"divide", 0xf7},
    {"eacute", 0xe9},  {"egrave", 0xe8},  {"emsp", 0x2003},   {"ensp", 0x2002},  {"euml", 0xeb},     {"ge", 0x2265},
    {"gt", '>'},       {"harr", 0x2194},  {"hellip", 0x2026}, {"iacute", 0xed},  {"iexcl", 0xa1},    {"infin", 0x221e},
    {"iquest", 0xbf},  {"laquo", 0xab},   {"larr", 0x2190},   {"ldquo", 0x201c}, {"le", 0x2264},     {"lsquo", 0x2018},
    {"lt", '<'},       {"mdash", 0x2014}, {"middot", 0xb7},   {"minus", 0x2212}, {"nbsp", 0xa0},     {"ndash", 0x2013},
    {"ne", 0x2260},    {"ntilde", 0xf1},  {"oacute", 0xf3},   {"ouml", 0xf6},    {"para", 0xb6},     {"plusmn", 0xb1},
    {"quot", '"'},     {"raquo", 0xbb},   {"rarr", 0x2192},   {"rdquo", 0x201d}, {"reg", 0xae},      {"rsquo", 0x2019},
    {"sect", 0xa7},    {"shy", 0xad},     {"sup2", 0xb2},     {"szlig", 0xdf},   {"thinsp", 0x2009}, {"times", 0xd7},
    {"trade", 0x2122}, {"uacute", 0xfa},  {"uarr", 0x2191},   {"uuml", 0xfc},
}};
static_assert(std::ranges::is_sorted(entities, {}, &Entity::first));

constexpr std::size_t longest_reference = 12;

std::optional<char32_t> numbered(std::string_view digits) {
  int base = 10;
  if (digits.starts_with('x') || digits.starts_with('X')) {
    base = 16;
    digits.remove_prefix(1);
  }
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  if (value == 0 || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return std::nullopt;
  return value;
}

std::optional<char32_t> character(std::string_view name) {
  if (name.starts_with('#')) return numbered(name.substr(1));
  const auto found = std::ranges::lower_bound(entities, name, {}, &Entity::first);
  if (found == entities.end() || found->first != name) return std::nullopt;
  return found->second;
}

}  // namespace

std::string resolve_entities(std::string_view text) {
  std::string resolved;
  while (!text.empty()) {
    const std::size_t start = std::min(text.find('&'), text.size());
    resolved += text.substr(0, start);
    text.remove_prefix(start);
    if (text.empty()) break;
    const std::size_t end = text.substr(0, longest_reference).find(';');
    const auto value = end == std::string_view::npos ? std::nullopt : character(text.substr(1, end - 1));
    if (value) engine::append_code_point(resolved, *value);
    if (!value) resolved += '&';
    text.remove_prefix(value ? end + 1 : 1);
  }
  return resolved;
}

}  // namespace molly::training
