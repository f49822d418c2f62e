#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "engine/memory/prefix_tree.h"

struct llama_model;
struct llama_vocab;

namespace molly::engine {

enum class SpecialTokens : std::uint8_t { as_text, parsed };
enum class Beginning : std::uint8_t { as_model_wants, bare };

// A model file's tokenizer: libllama's, loaded without weights. Thread-safe after open().
class Vocabulary {
 public:
  // Errors as from gguf::read_model_file. Blocks on the disk.
  static Result<std::unique_ptr<Vocabulary>> open(const std::filesystem::path& model);
  ~Vocabulary();
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  // A beginning token that the text spells itself, as many chat templates do, is not added a second time. Bytes that
  // are not UTF-8 become U+FFFD.
  std::vector<Token> tokenize(std::string_view text, SpecialTokens special, Beginning beginning) const;
  // The bytes of one token; special tokens render as nothing unless `parsed`, a number that is no token as nothing. Not
  // always whole UTF-8 characters.
  std::string piece(Token token, SpecialTokens special = SpecialTokens::as_text) const;
  std::string detokenize(std::span<const Token> tokens) const;

  std::uint32_t size() const;
  bool is_end(Token token) const;  // of generation: end of text, end of turn, ...
  std::span<const Token> end_tokens() const { return end_tokens_; }
  // Tokens with a byte that no UTF-8 text holds: llama.cpp's grammars let them pass.
  std::span<const Token> malformed_tokens() const { return malformed_tokens_; }
  std::optional<Token> beginning() const;
  std::optional<Token> end() const;
  const llama_vocab* handle() const;
  // Whether models of the two can draft for each other: same text and kind for every token, same end tokens. Else the
  // sentence says which is the first that differs. Models of one family are padded differently: up to max_padding more
  // tokens at the end do not matter.
  Result<void> can_draft_for(const Vocabulary& other) const;
  static constexpr std::uint32_t max_padding = 256;

 private:
  explicit Vocabulary(llama_model* model);
  llama_model* model_;
  std::vector<Token> end_tokens_;
  std::vector<Token> malformed_tokens_;
};

}  // namespace molly::engine
