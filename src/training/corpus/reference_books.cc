#include "training/corpus/reference_books.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <format>
#include <map>
#include <optional>

namespace molly::training {
namespace {

template <class Visit>
void each_line(std::string_view text, Visit&& visit) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    visit(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

std::string_view next_field(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view field = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return field;
}

std::string_view word_class(std::string_view synset_type) {
  if (synset_type == "n") return "noun";
  if (synset_type == "v") return "verb";
  if (synset_type == "a" || synset_type == "s") return "adjective";
  return synset_type == "r" ? "adverb" : std::string_view();
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = std::min(text.find_first_not_of(' '), text.size());
  text.remove_prefix(first);
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

// Of "beautiful_word(p)", without the mark of where an adjective may stand.
std::string plain_word(std::string_view word) {
  std::string plain(word.substr(0, word.find('(')));
  std::ranges::replace(plain, '_', ' ');
  return plain;
}

// synset_offset lex_filenum ss_type w_cnt word lex_id [word lex_id...] ... | gloss
std::optional<std::string> gloss_of(std::string_view line) {
  const std::size_t bar = line.find(" | ");
  if (line.starts_with(' ') || bar == std::string_view::npos) return std::nullopt;
  std::string_view fields = line.substr(0, bar);
  next_field(fields, ' ');
  next_field(fields, ' ');
  const std::string_view kind = word_class(next_field(fields, ' '));
  const std::string_view count_text = next_field(fields, ' ');
  unsigned count = 0;
  std::from_chars(count_text.data(), count_text.data() + count_text.size(), count, 16);
  if (kind.empty() || count == 0) return std::nullopt;
  std::string words;
  for (unsigned i = 0; i < count; ++i) {
    words += (i == 0 ? "" : ", ") + plain_word(next_field(fields, ' '));
    next_field(fields, ' ');
  }
  return std::format("{} ({}): {}", words, kind, trimmed(line.substr(bar + 3)));
}

// dictd's numbers have the digits of base 64, the highest first.
std::optional<std::uint64_t> dictd_number(std::string_view digits) {
  constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (digits.empty() || digits.size() > 8) return std::nullopt;
  std::uint64_t number = 0;
  for (const char digit : digits) {
    const std::size_t value = alphabet.find(digit);
    if (value == std::string_view::npos) return std::nullopt;
    number = number * 64 + value;
  }
  return number;
}

}  // namespace

std::vector<std::string> glosses_of(std::string_view wordnet_data) {
  std::vector<std::string> glosses;
  each_line(wordnet_data, [&](std::string_view line) {
    if (auto gloss = gloss_of(line)) glosses.push_back(*std::move(gloss));
  });
  return glosses;
}

std::vector<std::string> entries_of(std::string_view dictionary, std::string_view index) {
  std::map<std::uint64_t, std::uint64_t> lengths;  // by where the entry begins; several headwords may share one
  each_line(index, [&](std::string_view line) {
    const std::string_view headword = next_field(line, '\t');
    const auto begin = dictd_number(next_field(line, '\t'));
    const auto length = dictd_number(line);
    if (headword.starts_with("00-database") || !begin || !length) return;
    if (*begin < dictionary.size() && *length <= dictionary.size() - *begin) lengths.emplace(*begin, *length);
  });
  std::vector<std::string> entries;
  for (const auto& [begin, length] : lengths) entries.emplace_back(dictionary.substr(begin, length));
  return entries;
}

bool describes_superheavy_element(std::string_view entry) {
  constexpr std::string_view label = "Atomic number: ";
  const std::size_t at = entry.find(label);
  if (at == std::string_view::npos) return false;
  const std::string_view digits = entry.substr(at + label.size());
  unsigned number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number >= 104;
}

}  // namespace molly::training
