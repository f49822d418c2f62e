#include "base/text.h"

#include <cmath>
#include <limits>
#include <vector>

namespace molly::base {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr std::array size_units{
    Unit{"", 1},
    Unit{"B", 1},
    Unit{"KiB", 1ULL << 10},
    Unit{"MiB", 1ULL << 20},
    Unit{"GiB", 1ULL << 30},
    Unit{"TiB", 1ULL << 40},
    Unit{"KB", 1'000},
    Unit{"kB", 1'000},
    Unit{"MB", 1'000'000},
    Unit{"GB", 1'000'000'000},
    Unit{"TB", 1'000'000'000'000},
};

constexpr std::array duration_units{
    Unit{"ms", 1},       Unit{"s", 1'000},     Unit{"m", 60'000},
    Unit{"min", 60'000}, Unit{"h", 3'600'000}, Unit{"d", 86'400'000},
};

// "12", "12KiB", "1.5 GiB" times the unit; none where the unit is unknown or the product does not fit.
std::optional<std::uint64_t> parse_quantity(std::string_view text, std::span<const Unit> units) {
  const char* const end = text.data() + text.size();
  const auto digits_end = std::min(text.find_first_not_of("0123456789."), text.size());
  std::string_view unit_name = text.substr(digits_end);
  while (unit_name.starts_with(' ')) unit_name.remove_prefix(1);
  const auto unit = std::ranges::find(units, unit_name, &Unit::name);
  if (digits_end == 0 || unit == units.end()) return std::nullopt;
  std::uint64_t whole = 0;
  const auto [after, problem] = std::from_chars(text.data(), end, whole);
  if (problem != std::errc()) return std::nullopt;
  if (after == text.data() + digits_end) {
    if (whole > std::numeric_limits<std::uint64_t>::max() / unit->factor) return std::nullopt;
    return whole * unit->factor;
  }
  double fraction = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + digits_end, fraction, std::chars_format::fixed);
  if (error != std::errc() || stop != text.data() + digits_end || text[digits_end - 1] == '.') return std::nullopt;
  const double product = fraction * static_cast<double>(unit->factor);
  if (product > 9e18) return std::nullopt;
  return static_cast<std::uint64_t>(product);
}

// "1.5", "256", "0.1": at most one digit behind the point.
std::string short_number(double number) {
  const auto tenths = static_cast<std::uint64_t>(std::llround(number * 10));
  std::string out = std::to_string(tenths / 10);
  if (tenths % 10 != 0) out += "." + std::to_string(tenths % 10);
  return out;
}

std::string two_digits(unsigned number) {
  std::string out = std::to_string(number);
  return out.size() < 2 ? "0" + out : out;
}

}  // namespace

std::size_t edit_distance(std::string_view left, std::string_view right) {
  std::vector<std::size_t> before_last(right.size() + 1);
  std::vector<std::size_t> last(right.size() + 1);
  std::vector<std::size_t> current(right.size() + 1);
  for (std::size_t j = 0; j <= right.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= left.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const std::size_t change = left[i - 1] == right[j - 1] ? 0 : 1;
      current[j] = std::min({last[j] + 1, current[j - 1] + 1, last[j - 1] + change});
      if (i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1]) {
        current[j] = std::min(current[j], before_last[j - 2] + 1);
      }
    }
    std::swap(before_last, last);
    std::swap(last, current);
  }
  return last[right.size()];
}

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
  // What nobody could have meant is not worth the quadratic work either.
  constexpr std::size_t longest = 128;
  if (word.size() > longest) return std::nullopt;
  std::optional<std::string> best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > longest) continue;
    const std::size_t distance = edit_distance(word, candidate);
    if (distance >= best_distance) continue;
    best_distance = distance;
    best = candidate;
  }
  return best;
}

std::optional<std::uint64_t> parse_size(std::string_view text) { return parse_quantity(text, size_units); }

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  const auto quantity = parse_quantity(text, duration_units);
  if (!quantity || *quantity > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return std::nullopt;
  }
  return std::chrono::milliseconds(static_cast<std::int64_t>(*quantity));
}

std::string human_size(std::uint64_t bytes) {
  static constexpr std::array<std::string_view, 5> names{"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
  double number = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (number >= 1023.95 && unit + 1 < names.size()) {
    number /= 1024;
    ++unit;
  }
  return short_number(number) + " " + std::string(names[unit]);
}

std::string human_duration(std::chrono::milliseconds duration) {
  const auto milliseconds = duration.count();
  if (milliseconds < 0) return "-" + human_duration(-duration);
  const auto count = static_cast<double>(milliseconds);
  if (milliseconds < 1'000) return std::to_string(milliseconds) + " ms";
  if (milliseconds < 60'000) return short_number(count / 1'000) + " s";
  if (milliseconds < 3'600'000) return short_number(count / 60'000) + " min";
  if (milliseconds < 86'400'000) return short_number(count / 3'600'000) + " h";
  return short_number(count / 86'400'000) + " d";
}

std::string iso_time(std::chrono::sys_time<std::chrono::milliseconds> time) {
  using namespace std::chrono;
  const auto day = floor<days>(time);
  const year_month_day date{day};
  const hh_mm_ss clock{floor<seconds>(time - day)};
  std::string year = std::to_string(static_cast<int>(date.year()));
  return year + "-" + two_digits(static_cast<unsigned>(date.month())) + "-" +
         two_digits(static_cast<unsigned>(date.day())) + "T" +
         two_digits(static_cast<unsigned>(clock.hours().count())) + ":" +
         two_digits(static_cast<unsigned>(clock.minutes().count())) + ":" +
         two_digits(static_cast<unsigned>(clock.seconds().count())) + "Z";
}

}  // namespace molly::base
