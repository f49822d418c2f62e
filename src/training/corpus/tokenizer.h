#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/error.h"

namespace molly::training {

using Token = std::int32_t;

// Two neighbouring tokens that become one, in the order in which training found them.
struct Merge {
  Token left = 0;
  Token right = 0;
  bool operator==(const Merge&) const = default;
};

// How names of special tokens within a text are taken.
enum class Specials : std::uint8_t { as_text, parsed };

// Byte-level byte-pair encoding behind the words of PreTokenizer. Tokens 0 to 255 are the bytes, then come the results
// of the merges (one whose bytes are a token already gives that token), then the special tokens. The ids are those that
// llama.cpp gives with the file that write_tokenizer makes (tokenizer_file.h). Thread-safe.
class Tokenizer {
 public:
  // Refuses merges of tokens that do not exist yet, repeated merges and special tokens that are empty or not unique.
  static Result<Tokenizer> make(std::span<const Merge> merges, std::span<const std::string> specials);

  // Of bytes that are not UTF-8 too, but llama.cpp never sees those.
  std::vector<Token> encode(std::string_view text, Specials specials = Specials::as_text) const;
  // Special tokens render as nothing, as does a number that is no token.
  std::string decode(std::span<const Token> tokens) const;

  std::size_t size() const { return pieces_.size(); }
  std::size_t special_begin() const { return pieces_.size() - specials_.size(); }
  // The bytes of a token, the name of a special one.
  const std::string& piece(Token token) const { return pieces_[static_cast<std::size_t>(token)]; }
  std::span<const Merge> merges() const { return merges_; }
  std::span<const std::string> specials() const { return specials_; }
  // -1 when there is none of that name.
  Token special(std::string_view name) const;

 private:
  struct Step {
    std::uint32_t rank = 0;
    Token result = 0;
  };
  struct PairHash {
    std::size_t operator()(std::uint64_t pair) const { return pair * 0x9e3779b97f4a7c15 >> 20; }
  };
  struct Pending;
  class Word;

  Result<void> add_merge(Merge merge, std::unordered_map<std::string, Token>& ids);
  Result<void> add_special(const std::string& name);
  const Step* step(Token left, Token right) const;
  void encode_text(std::string_view text, std::vector<Token>& tokens) const;
  // Where the first special token's name stands at or after `from`, and which it is; of two, the longer.
  std::pair<std::size_t, Token> find_special(std::string_view text, std::size_t from) const;

  std::vector<std::string> pieces_;
  std::vector<Merge> merges_;
  std::vector<std::string> specials_;
  std::string special_initials_;
  std::unordered_map<std::uint64_t, Step, PairHash> steps_;
};

inline constexpr std::string_view end_of_document = "<|endoftext|>";
inline constexpr std::string_view begin_of_turn = "<|im_start|>";
inline constexpr std::string_view end_of_turn = "<|im_end|>";

// The three above and names kept free, 16 in all, so that later models can have more without a new vocabulary.
std::vector<std::string> default_specials();

}  // namespace molly::training
