#pragma once

#include <filesystem>

#include "core/error.h"
#include "training/corpus/tokenizer.h"

struct gguf_context;

namespace molly::training {

// The tokenizer.ggml.* keys: model gpt2, pre qwen2; nothing is put before a text; <|endoftext|> parts documents and
// pads, <|im_end|> ends a turn and with it generation. Fails when the tokenizer lacks one of these two.
Result<void> write_tokenizer(gguf_context* file, const Tokenizer& tokenizer);

// A model file that holds the tokenizer and no weights.
Result<void> write_vocabulary_file(const std::filesystem::path& path, const Tokenizer& tokenizer);

// From any model file with a tokenizer of this kind: the error names the key that says otherwise.
Result<Tokenizer> read_tokenizer(const std::filesystem::path& path);

}  // namespace molly::training
