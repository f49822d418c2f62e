#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "training/corpus/tokenizer.h"

namespace molly::training {

// Texts that count together as `share` of what a tokenizer is trained on, however long they are.
struct TextShare {
  std::span<const std::string_view> texts;
  double share = 1;
};

struct BpeSettings {
  std::size_t vocabulary = 4096;  // bytes, merges and special tokens together
  std::vector<std::string> specials = default_specials();
};

// Learns merges: always the most frequent pair of neighbours within words, of equals the one whose left token, then
// right token, is the older. The same texts in any order give the same tokenizer. Fewer tokens than asked for when the
// texts have no more pairs; an error when the vocabulary does not even hold the bytes and special tokens, when a share
// is not positive or when its texts are empty.
Result<Tokenizer> train_bpe(std::span<const TextShare> shares, const BpeSettings& settings);

}  // namespace molly::training
