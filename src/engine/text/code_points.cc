#include "engine/text/code_points.h"

#include <algorithm>
#include <cstdint>
#include <format>

namespace molly::engine {
namespace {

constexpr char32_t last_code_point = 0x10ffff;

bool is_alphanumeric(char32_t value) {
  return (value >= 'a' && value <= 'z') || (value >= 'A' && value <= 'Z') || (value >= '0' && value <= '9');
}

std::string in_class(char32_t value) {
  if (is_alphanumeric(value) || value == '_' || value == ' ') return std::string(1, static_cast<char>(value));
  const auto number = static_cast<std::uint32_t>(value);
  if (value < 0x100) return std::format("\\x{:02X}", number);
  return value < 0x10000 ? std::format("\\u{:04X}", number) : std::format("\\U{:08X}", number);
}

std::string character_class(const CodePoints& set) {
  std::string text = "[";
  for (const auto& [first, last] : set.ranges()) {
    text += in_class(first);
    if (last != first) text += (last == first + 1 ? "" : "-") + in_class(last);
  }
  return text + "]";
}

struct Escape {
  char32_t value;
  std::string_view grammar;
};
constexpr Escape escapes[] = {{'"', R"("\\\"")"}, {'\\', R"("\\\\")"}, {'\n', R"("\\n")"}, {'\r', R"("\\r")"},
                              {'\t', R"("\\t")"}, {'\b', R"("\\b")"},  {'\f', R"("\\f")"}};

}  // namespace

const CodePoints& plain_in_json() {
  static const CodePoints set{{0x20, 0x21}, {0x23, 0x5b}, {0x5d, 0x7e}, {0x80, 0xd7ff}, {0xe000, last_code_point}};
  return set;
}

void CodePoints::add(char32_t first, char32_t last) {
  if (first > last) return;
  std::vector<Range> merged;
  for (const Range& range : ranges_) {
    const bool apart = range.second + 1 < first || last + 1 < range.first;
    if (apart) {
      merged.push_back(range);
    } else {
      first = std::min(first, range.first);
      last = std::max(last, range.second);
    }
  }
  merged.insert(std::ranges::lower_bound(merged, Range(first, last)), Range(first, last));
  ranges_ = std::move(merged);
}

void CodePoints::add(const CodePoints& other) {
  for (const auto& [first, last] : other.ranges_) add(first, last);
}

CodePoints CodePoints::complement() const {
  CodePoints result;
  char32_t next = 0;
  for (const auto& [first, last] : ranges_) {
    if (first > next) result.ranges_.emplace_back(next, first - 1);
    next = last + 1;
  }
  if (next <= last_code_point) result.ranges_.emplace_back(next, last_code_point);
  return result;
}

CodePoints CodePoints::common_with(const CodePoints& other) const {
  CodePoints apart = complement();
  apart.add(other.complement());
  return apart.complement();
}

bool CodePoints::contains(char32_t value) const {
  return std::ranges::any_of(ranges_,
                             [&](const Range& range) { return range.first <= value && value <= range.second; });
}

std::string grammar_of_code_points(const CodePoints& set) {
  std::string text;
  const CodePoints plain = set.common_with(plain_in_json());
  if (!plain.empty()) text = character_class(plain);
  int alternatives = plain.empty() ? 0 : 1;
  for (const auto& [value, grammar] : escapes) {
    if (!set.contains(value)) continue;
    text += (alternatives++ == 0 ? "" : " | ") + std::string(grammar);
  }
  return alternatives > 1 ? "(" + text + ")" : text;
}

}  // namespace molly::engine
