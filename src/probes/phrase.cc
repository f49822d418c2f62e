#include "probes/phrase.h"

#include <algorithm>
#include <cctype>
#include <numeric>

namespace molly::probes {

std::string fill(std::string_view pattern, std::initializer_list<std::string_view> facts) {
  std::string text;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const bool is_place = pattern.size() - at >= 3 && pattern[at] == '{' && pattern[at + 2] == '}';
    const std::size_t fact = is_place ? static_cast<std::size_t>(pattern[at + 1] - '0') : facts.size();
    if (fact >= facts.size()) {
      text += pattern[at];
      continue;
    }
    text += facts.begin()[fact];
    at += 2;
  }
  return text;
}

std::string say(Random& random, Language language, const Phrases& phrases,
                std::initializer_list<std::string_view> facts) {
  return fill(random.pick(language == Language::english ? phrases.english : phrases.spanish), facts);
}

std::string join(const std::vector<std::string>& items, std::string_view separator) {
  std::string text;
  for (const std::string& item : items) {
    if (&item != &items.front()) text += separator;
    text += item;
  }
  return text;
}

std::string decimal(std::int64_t units, int places) {
  std::string digits = std::to_string(units);
  if (places == 0) return digits;
  const auto after = static_cast<std::size_t>(places);
  if (digits.size() <= after) digits.insert(0, after + 1 - digits.size(), '0');
  digits.insert(digits.size() - after, 1, '.');
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return digits;
}

std::vector<std::size_t> distinct(Random& random, std::size_t size, std::size_t count) {
  std::vector<std::size_t> indexes(size);
  std::iota(indexes.begin(), indexes.end(), std::size_t{0});
  for (std::size_t at = 0; at < count; ++at) std::swap(indexes[at], indexes[at + random.below(size - at)]);
  indexes.resize(count);
  return indexes;
}

std::string lower(std::string_view ascii) {
  std::string text(ascii);
  std::ranges::transform(text, text.begin(), [](unsigned char letter) { return std::tolower(letter); });
  return text;
}

std::string upper(std::string_view ascii) {
  std::string text(ascii);
  std::ranges::transform(text, text.begin(), [](unsigned char letter) { return std::toupper(letter); });
  return text;
}

}  // namespace molly::probes
