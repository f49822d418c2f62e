#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

// For text that comes in pieces.
namespace molly::engine {

constexpr std::string_view white_space = " \t\r\n";

inline bool is_blank(std::string_view text) { return text.find_first_not_of(white_space) == std::string_view::npos; }

// The length of the longest end of `text` that `word` begins with, but for the whole of it.
inline std::size_t possible_beginning(std::string_view text, std::string_view word) {
  if (word.empty()) return 0;
  for (std::size_t length = std::min(text.size(), word.size() - 1); length > 0; --length) {
    if (text.ends_with(word.substr(0, length))) return length;
  }
  return 0;
}

}  // namespace molly::engine
