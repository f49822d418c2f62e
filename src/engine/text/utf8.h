#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace molly::engine {

struct CodePoint {
  char32_t value = 0;
  std::size_t length = 0;  // bytes; 0: the text does not start with a well-formed character
};

// The first character of a text that is not empty (Unicode table 3-7).
CodePoint first_code_point(std::string_view text);

// Bytes that a character with this first byte has; 0: none begins so.
std::size_t character_bytes(char first);

bool is_utf8(std::string_view text);

// Every byte that belongs to no well-formed character becomes U+FFFD.
std::string repaired_utf8(std::string_view text);

void append_code_point(std::string& text, char32_t value);

}  // namespace molly::engine
