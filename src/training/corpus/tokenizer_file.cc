#include "training/corpus/tokenizer_file.h"

#include <gguf.h>

#include <algorithm>
#include <array>
#include <format>
#include <memory>
#include <unordered_map>

#include "engine/text/utf8.h"

namespace molly::training {
namespace {

constexpr const char* model_key = "tokenizer.ggml.model";
constexpr const char* pre_key = "tokenizer.ggml.pre";
constexpr const char* tokens_key = "tokenizer.ggml.tokens";
constexpr const char* types_key = "tokenizer.ggml.token_type";
constexpr const char* merges_key = "tokenizer.ggml.merges";

constexpr std::int32_t normal = 1;  // of llama.cpp's LLAMA_TOKEN_TYPE
constexpr std::int32_t control = 3;

using File = std::unique_ptr<gguf_context, decltype(&gguf_free)>;

// GPT-2's way to spell bytes in a text file: printable Latin-1 characters stand for themselves, the other bytes for
// the characters from U+0100 on.
const std::array<std::string, 256>& spellings() {
  static const std::array<std::string, 256> made = [] {
    std::array<std::string, 256> all;
    char32_t next = 0x100;
    for (char32_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
      engine::append_code_point(all[byte], printable ? byte : next++);
    }
    return all;
  }();
  return made;
}

std::string spelled(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += spellings()[static_cast<unsigned char>(c)];
  return text;
}

void set_strings(gguf_context* file, const char* key, const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  ::gguf_set_arr_str(file, key, pointers.data(), pointers.size());
}

Error wrong(const char* key, std::string_view what) {
  return {ErrorCode::invalid_request, std::format("{} {}", key, what), key};
}

Result<void> expect_text(const gguf_context* file, const char* key, std::string_view expected) {
  const auto id = ::gguf_find_key(file, key);
  if (id < 0 || ::gguf_get_kv_type(file, id) != GGUF_TYPE_STRING || ::gguf_get_val_str(file, id) != expected) {
    return std::unexpected(wrong(key, std::format("is not \"{}\"", expected)));
  }
  return {};
}

Result<std::vector<std::string>> strings(const gguf_context* file, const char* key) {
  const auto id = ::gguf_find_key(file, key);
  if (id < 0 || ::gguf_get_kv_type(file, id) != GGUF_TYPE_ARRAY || ::gguf_get_arr_type(file, id) != GGUF_TYPE_STRING) {
    return std::unexpected(wrong(key, "is not a list of texts"));
  }
  std::vector<std::string> texts(::gguf_get_arr_n(file, id));
  for (std::size_t i = 0; i < texts.size(); ++i) texts[i] = ::gguf_get_arr_str(file, id, i);
  return texts;
}

Result<std::vector<std::int32_t>> types(const gguf_context* file, std::size_t count) {
  const auto id = ::gguf_find_key(file, types_key);
  if (id < 0 || ::gguf_get_kv_type(file, id) != GGUF_TYPE_ARRAY || ::gguf_get_arr_type(file, id) != GGUF_TYPE_INT32 ||
      ::gguf_get_arr_n(file, id) != count) {
    return std::unexpected(wrong(types_key, "is not one number for every token"));
  }
  const auto* values = static_cast<const std::int32_t*>(::gguf_get_arr_data(file, id));
  return std::vector<std::int32_t>(values, values + count);
}

Result<std::vector<Merge>> read_merges(const gguf_context* file, const std::vector<std::string>& tokens) {
  const auto lines = strings(file, merges_key);
  if (!lines) return std::unexpected(lines.error());
  std::unordered_map<std::string_view, Token> ids;
  for (std::size_t i = 0; i < tokens.size(); ++i) ids.emplace(tokens[i], static_cast<Token>(i));
  std::vector<Merge> merges;
  for (const std::string_view line : *lines) {
    const std::size_t space = line.find(' ');
    const auto left = ids.find(line.substr(0, space));
    const auto right = space == std::string_view::npos ? ids.end() : ids.find(line.substr(space + 1));
    if (left == ids.end() || right == ids.end()) return std::unexpected(wrong(merges_key, "joins unknown tokens"));
    merges.push_back({left->second, right->second});
  }
  return merges;
}

Result<std::vector<std::string>> read_specials(const gguf_context* file, const std::vector<std::string>& tokens) {
  const auto kinds = types(file, tokens.size());
  if (!kinds) return std::unexpected(kinds.error());
  std::vector<std::string> specials;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if ((*kinds)[i] == control) specials.push_back(tokens[i]);
  }
  return specials;
}

std::vector<std::string> all_spelled(const Tokenizer& tokenizer) {
  std::vector<std::string> tokens;
  for (std::size_t i = 0; i < tokenizer.size(); ++i) {
    const std::string& piece = tokenizer.piece(static_cast<Token>(i));
    tokens.push_back(i < tokenizer.special_begin() ? spelled(piece) : piece);
  }
  return tokens;
}

}  // namespace

Result<void> write_tokenizer(gguf_context* file, const Tokenizer& tokenizer) {
  const Token document_end = tokenizer.special(end_of_document);
  const Token turn_end = tokenizer.special(end_of_turn);
  if (document_end < 0 || turn_end < 0) {
    return failure(ErrorCode::invalid_request, "the tokenizer lacks the token that ends a document or a turn");
  }
  ::gguf_set_val_str(file, model_key, "gpt2");
  ::gguf_set_val_str(file, pre_key, "qwen2");
  set_strings(file, tokens_key, all_spelled(tokenizer));
  std::vector<std::int32_t> kinds(tokenizer.size(), control);
  std::fill_n(kinds.begin(), tokenizer.special_begin(), normal);
  ::gguf_set_arr_data(file, types_key, GGUF_TYPE_INT32, kinds.data(), kinds.size());
  std::vector<std::string> lines;
  for (const Merge merge : tokenizer.merges()) {
    lines.push_back(spelled(tokenizer.piece(merge.left)) + ' ' + spelled(tokenizer.piece(merge.right)));
  }
  set_strings(file, merges_key, lines);
  // libllama takes token 11 for the beginning token of a file that names none.
  ::gguf_set_val_u32(file, "tokenizer.ggml.bos_token_id", static_cast<std::uint32_t>(document_end));
  ::gguf_set_val_u32(file, "tokenizer.ggml.eos_token_id", static_cast<std::uint32_t>(turn_end));
  ::gguf_set_val_u32(file, "tokenizer.ggml.eot_token_id", static_cast<std::uint32_t>(turn_end));
  ::gguf_set_val_u32(file, "tokenizer.ggml.padding_token_id", static_cast<std::uint32_t>(document_end));
  ::gguf_set_val_bool(file, "tokenizer.ggml.add_bos_token", false);
  ::gguf_set_val_bool(file, "tokenizer.ggml.add_eos_token", false);
  return {};
}

Result<void> write_vocabulary_file(const std::filesystem::path& path, const Tokenizer& tokenizer) {
  const File file(::gguf_init_empty(), &gguf_free);
  ::gguf_set_val_str(file.get(), "general.architecture", "llama");
  ::gguf_set_val_str(file.get(), "general.type", "model");
  if (auto written = write_tokenizer(file.get(), tokenizer); !written) return written;
  if (!::gguf_write_to_file(file.get(), path.c_str(), true)) {
    return failure(ErrorCode::io_failed, std::format("cannot write {}", path.string()));
  }
  return {};
}

Result<Tokenizer> read_tokenizer(const std::filesystem::path& path) {
  const File file(::gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = nullptr}), &gguf_free);
  if (!file) return failure(ErrorCode::io_failed, std::format("{} is not a readable model file", path.string()));
  if (auto kind = expect_text(file.get(), model_key, "gpt2"); !kind) return std::unexpected(kind.error());
  if (auto kind = expect_text(file.get(), pre_key, "qwen2"); !kind) return std::unexpected(kind.error());
  const auto tokens = strings(file.get(), tokens_key);
  if (!tokens) return std::unexpected(tokens.error());
  const auto merges = read_merges(file.get(), *tokens);
  if (!merges) return std::unexpected(merges.error());
  const auto specials = read_specials(file.get(), *tokens);
  if (!specials) return std::unexpected(specials.error());
  auto tokenizer = Tokenizer::make(*merges, *specials);
  if (tokenizer && all_spelled(*tokenizer) != *tokens) {
    return std::unexpected(wrong(tokens_key, "is not bytes, then merges, then special tokens"));
  }
  return tokenizer;
}

}  // namespace molly::training
