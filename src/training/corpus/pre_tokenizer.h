#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace molly::training {

// Cuts text into the words that merges never cross, as llama.cpp's pre-tokenizer "qwen2" does:
//
//   (?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}
//   | ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
//
// A byte that belongs to no well-formed character counts as a character of its own that is neither letter nor space.
// One walk over one text; `next` gives every byte of it exactly once.
class PreTokenizer {
 public:
  // The text must outlive the views that next() gives.
  explicit PreTokenizer(std::string_view text);

  // The next word, empty at the end.
  std::string_view next();

 private:
  struct Character {
    char32_t value = 0;
    std::uint8_t length = 0;  // bytes
  };

  Character at(std::size_t offset) const;
  std::size_t end_of_word() const;
  std::size_t contraction() const;
  std::size_t letters_from(std::size_t offset) const;
  std::size_t symbols_from(std::size_t offset) const;
  std::size_t newlines_from(std::size_t offset) const;
  std::size_t end_of_space() const;

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace molly::training
