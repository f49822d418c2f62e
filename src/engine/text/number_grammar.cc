#include "engine/text/number_grammar.h"

#include <algorithm>
#include <format>
#include <string_view>
#include <vector>

namespace molly::engine {
namespace {

constexpr std::size_t most_digits = 16;
constexpr std::string_view fraction = R"(("." [0-9]{1,16})?)";
constexpr std::string_view zero_fraction = R"(("." "0"{1,16})?)";
constexpr std::string_view positive_fraction = R"("." [0-9]{0,15} [1-9])";

std::string joined(const std::vector<std::string>& alternatives) {
  std::string text;
  for (const std::string& one : alternatives) text += (text.empty() ? "" : " | ") + one;
  return text;
}

std::string group(const std::string& text) { return "(" + text + ")"; }

std::string any_digits(std::size_t count) {
  if (count == 0) return "";
  return count == 1 ? " [0-9]" : std::format(" [0-9]{{{}}}", count);
}

std::string digits(char from, char to) {
  return from == to ? std::format("\"{}\"", from) : std::format("[{}-{}]", from, to);
}

bool all(std::string_view text, char digit) { return text.find_first_not_of(digit) == std::string_view::npos; }

// Numbers of one length from `low` to `high`, digit by digit.
std::string same_length(std::string_view low, std::string_view high) {
  const std::string_view low_rest = low.substr(1);
  const std::string_view high_rest = high.substr(1);
  const auto then = [](std::string_view from, std::string_view to) {
    return from.empty() ? std::string() : " " + group(same_length(from, to));
  };
  if (all(low_rest, '0') && all(high_rest, '9')) return digits(low[0], high[0]) + any_digits(low_rest.size());
  if (low[0] == high[0]) return digits(low[0], low[0]) + then(low_rest, high_rest);
  std::vector<std::string> alternatives;
  char from = low[0];
  char to = high[0];
  if (!all(low_rest, '0')) {
    alternatives.push_back(digits(from, from) + then(low_rest, std::string(low_rest.size(), '9')));
    ++from;
  }
  const bool cut = !all(high_rest, '9');
  if (cut) --to;
  if (from <= to) alternatives.push_back(digits(from, to) + any_digits(low_rest.size()));
  if (cut) alternatives.push_back(digits(high[0], high[0]) + then(std::string(high_rest.size(), '0'), high_rest));
  return joined(alternatives);
}

std::string between(std::int64_t low, std::int64_t high) {
  if (low > high) return "";
  const std::string last = std::to_string(high);
  std::string first = std::to_string(low);
  std::vector<std::string> alternatives;
  for (; first.size() < last.size(); first = "1" + std::string(first.size(), '0')) {
    alternatives.push_back(same_length(first, std::string(first.size(), '9')));
  }
  alternatives.push_back(same_length(first, last));
  return joined(alternatives);
}

std::string at_least(std::int64_t low) {
  const std::size_t length = std::to_string(low).size();
  std::string text = same_length(std::to_string(low), std::string(length, '9'));
  if (length < most_digits) text += std::format(" | [1-9] [0-9]{{{},{}}}", length, most_digits - 1);
  return text;
}

std::string whole(std::int64_t low, std::optional<std::int64_t> high) {
  return high ? between(low, *high) : at_least(low);
}

// Not below zero, with a fraction.
std::string decimals(Bound low, std::optional<Bound> high) {
  std::vector<std::string> alternatives;
  const std::int64_t from = low.exclusive ? low.value + 1 : low.value;
  const std::optional<std::int64_t> to = high ? std::optional(high->value - 1) : std::nullopt;
  const std::string inner = whole(from, to);
  if (low.exclusive && (!high || low.value < high->value)) {
    alternatives.push_back(std::format("\"{}\" {}", low.value, positive_fraction));
  }
  if (!inner.empty()) alternatives.push_back(group(inner) + " " + std::string(fraction));
  const bool reaches =
      high && !high->exclusive && (low.value < high->value || !low.exclusive) && low.value <= high->value;
  if (reaches) alternatives.push_back(std::format("\"{}\" {}", high->value, zero_fraction));
  return joined(alternatives);
}

std::string with_signs(const std::string& negative, const std::string& positive) {
  if (negative.empty()) return positive;
  return joined(positive.empty() ? std::vector{"\"-\" " + group(negative)}
                                 : std::vector{"\"-\" " + group(negative), positive});
}

Bound mirrored(const Bound& bound) { return {-bound.value, bound.exclusive}; }

}  // namespace

std::string grammar_of_integers(Bounds bounds) {
  std::optional<std::int64_t> least;
  std::optional<std::int64_t> most;
  if (bounds.least) least = bounds.least->value + (bounds.least->exclusive ? 1 : 0);
  if (bounds.most) most = bounds.most->value - (bounds.most->exclusive ? 1 : 0);
  std::string negative;
  std::string positive;
  if (!least || *least < 0) {
    const std::int64_t nearest = most ? std::max<std::int64_t>(-*most, 1) : 1;
    negative = whole(nearest, least ? std::optional(-*least) : std::nullopt);
  }
  if (!most || *most >= 0) positive = whole(std::max<std::int64_t>(least.value_or(0), 0), most);
  return with_signs(negative, positive);
}

std::string grammar_of_numbers(const Bounds& bounds) {
  std::string negative;
  std::string positive;
  if (!bounds.least || bounds.least->value < 0) {
    const Bound above_zero{0, true};
    const Bound nearest = bounds.most && bounds.most->value < 0 ? mirrored(*bounds.most) : above_zero;
    negative = decimals(nearest, bounds.least ? std::optional(mirrored(*bounds.least)) : std::nullopt);
  }
  if (!bounds.most || bounds.most->value >= 0) {
    const Bound zero{0, false};
    positive = decimals(bounds.least && bounds.least->value >= 0 ? *bounds.least : zero, bounds.most);
  }
  return with_signs(negative, positive);
}

}  // namespace molly::engine
