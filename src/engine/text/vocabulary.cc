#include "engine/text/vocabulary.h"

#include <llama.h>

#include <algorithm>
#include <format>
#include <limits>
#include <mutex>
#include <stdexcept>

#include "engine/text/utf8.h"
#include "gguf/model_file.h"

namespace molly::engine {
namespace {

void start_llama() {
  static std::once_flag once;
  std::call_once(once, [] {
    ::llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
    ::llama_backend_init();
  });
}

std::uint64_t elements(const gguf::ModelFile& file, std::string_view key) {
  const auto found = file.metadata.find(key);
  if (found == file.metadata.end()) return 0;
  const auto* array = std::get_if<gguf::ArrayValue>(&found->second);
  return array == nullptr ? 0 : array->count;
}

bool fits(const gguf::ModelFile& file, std::string_view key, std::uint64_t tokens) {
  return !file.metadata.contains(key) || elements(file, key) == tokens;
}

// What libllama takes for granted and would abort on.
Result<void> check_tokenizer(const gguf::ModelFile& file) {
  const auto refuse = [](std::string what) { return failure(ErrorCode::invalid_request, std::move(what), "model"); };
  const std::string kind = file.text("tokenizer.ggml.model").value_or("");
  if (kind.empty() || kind == "none" || kind == "no_vocab") return refuse("the model file holds no tokenizer");
  const std::uint64_t tokens = elements(file, "tokenizer.ggml.tokens");
  if (tokens == 0) return refuse("the model file's tokenizer has no tokens");
  if (tokens > (std::uint64_t{1} << 24)) return refuse("the model file's tokenizer has too many tokens");
  if (!fits(file, "tokenizer.ggml.scores", tokens) || !fits(file, "tokenizer.ggml.token_type", tokens)) {
    return refuse("the model file's tokenizer has lists of different lengths");
  }
  return {};
}

bool impossible_in_utf8(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte == 0xc0 || byte == 0xc1 || byte >= 0xf5;
}

std::int32_t length_of(std::string_view text) {
  if (text.size() > std::numeric_limits<std::int32_t>::max() / 2) throw std::length_error("a text of over 1 GiB");
  return static_cast<std::int32_t>(text.size());
}

std::optional<Token> present(llama_token token) {
  return token == LLAMA_TOKEN_NULL ? std::nullopt : std::optional<Token>(token);
}

}  // namespace

Result<std::unique_ptr<Vocabulary>> Vocabulary::open(const std::filesystem::path& path) {
  const auto file = gguf::read_model_file(path);
  if (!file) return std::unexpected(file.error());
  if (auto checked = check_tokenizer(*file); !checked) return std::unexpected(checked.error());
  start_llama();
  llama_model_params params = ::llama_model_default_params();
  params.vocab_only = true;
  llama_model* model = ::llama_model_load_from_file(path.c_str(), params);
  if (model == nullptr) {
    return failure(ErrorCode::invalid_request, "libllama does not know the model file's tokenizer", "model");
  }
  return std::unique_ptr<Vocabulary>(new Vocabulary(model));
}

Vocabulary::Vocabulary(llama_model* model) : model_(model) {
  for (Token token = 0; token < static_cast<Token>(size()); ++token) {
    if (::llama_vocab_is_eog(handle(), token)) end_tokens_.push_back(token);
    if (std::ranges::any_of(piece(token), impossible_in_utf8)) malformed_tokens_.push_back(token);
  }
}

Vocabulary::~Vocabulary() { ::llama_model_free(model_); }

std::vector<Token> Vocabulary::tokenize(std::string_view text, SpecialTokens special, Beginning beginning) const {
  if (!is_utf8(text)) return tokenize(repaired_utf8(text), special, beginning);
  const std::int32_t length = length_of(text);
  const bool parse = special == SpecialTokens::parsed;
  const std::optional<Token> first = this->beginning();
  const bool spelled = parse && first && text.starts_with(piece(*first, SpecialTokens::parsed));
  const bool add = beginning == Beginning::as_model_wants && !spelled;
  const std::span<const char> bytes(text);
  std::vector<Token> tokens(text.size() + 2);
  const auto into = [&] {
    return ::llama_tokenize(handle(), bytes.data(), length, tokens.data(), static_cast<std::int32_t>(tokens.size()),
                            add, parse);
  };
  std::int32_t count = into();
  if (count < 0) {
    tokens.resize(static_cast<std::size_t>(-std::int64_t{count}));
    count = into();
  }
  tokens.resize(static_cast<std::size_t>(std::max(count, 0)));
  return tokens;
}

std::string Vocabulary::piece(Token token, SpecialTokens special) const {
  if (token < 0 || static_cast<std::uint32_t>(token) >= size()) return {};
  const bool render = special == SpecialTokens::parsed;
  std::string text(32, '\0');
  const auto into = [&] {
    return ::llama_token_to_piece(handle(), token, text.data(), static_cast<std::int32_t>(text.size()), 0, render);
  };
  std::int32_t length = into();
  if (length < 0) {
    text.resize(static_cast<std::size_t>(-length));
    length = into();
  }
  text.resize(static_cast<std::size_t>(std::max(length, 0)));
  return text;
}

std::string Vocabulary::detokenize(std::span<const Token> tokens) const {
  std::string text;
  for (const Token token : tokens) text += piece(token);
  return text;
}

std::uint32_t Vocabulary::size() const { return static_cast<std::uint32_t>(::llama_vocab_n_tokens(handle())); }

bool Vocabulary::is_end(Token token) const { return std::ranges::binary_search(end_tokens_, token); }

std::optional<Token> Vocabulary::beginning() const { return present(::llama_vocab_bos(handle())); }

std::optional<Token> Vocabulary::end() const { return present(::llama_vocab_eos(handle())); }

const llama_vocab* Vocabulary::handle() const { return ::llama_model_get_vocab(model_); }

Result<void> Vocabulary::can_draft_for(const Vocabulary& other) const {
  const auto common = std::min(size(), other.size());
  if (std::max(size(), other.size()) - common > max_padding) {
    return failure(ErrorCode::invalid_request,
                   std::format("the vocabularies have {} and {} tokens", size(), other.size()));
  }
  for (Token token = 0; token < static_cast<Token>(common); ++token) {
    const std::string_view mine = ::llama_vocab_get_text(handle(), token);
    const std::string_view theirs = ::llama_vocab_get_text(other.handle(), token);
    if (mine != theirs) {
      return failure(ErrorCode::invalid_request,
                     std::format("the vocabularies differ first in token {}: '{}' and '{}'", token, mine, theirs));
    }
    if (::llama_vocab_get_attr(handle(), token) != ::llama_vocab_get_attr(other.handle(), token)) {
      return failure(ErrorCode::invalid_request,
                     std::format("the vocabularies differ first in what token {} ('{}') is for", token, mine));
    }
  }
  if (std::ranges::equal(end_tokens_, other.end_tokens_)) return {};
  return failure(ErrorCode::invalid_request, "the vocabularies have different end tokens");
}

}  // namespace molly::engine
