#pragma once

#include <ggml.h>

#include <array>
#include <vector>

#include "engine/adapters/lora_file.h"
#include "engine/model/config.h"

// The decoder as training sees it: every projection for itself, whole rows at once, no key-value cache.
namespace molly::training {

// y = W x + bias + scale B (A x): Hu et al., LoRA, arXiv 2106.09685, equation 3.
struct Linear {
  ggml_tensor* weight = nullptr;  // [n_in, n_out]
  ggml_tensor* bias = nullptr;    // [n_out] or null
  ggml_tensor* a = nullptr;       // [n_in, rank] or null
  ggml_tensor* b = nullptr;       // [rank, n_out]
  float scale = 1;                // alpha / rank
};

struct Layer {
  ggml_tensor* attn_norm = nullptr;  // [n_embd]
  ggml_tensor* ffn_norm = nullptr;
  ggml_tensor* q_norm = nullptr;  // [head_dim] or null
  ggml_tensor* k_norm = nullptr;
  std::array<Linear, engine::projection_count> projections;

  Linear& operator[](engine::Projection which) { return projections[static_cast<std::size_t>(which)]; }
  const Linear& operator[](engine::Projection which) const { return projections[static_cast<std::size_t>(which)]; }
};

struct Decoder {
  engine::ModelConfig config;
  ggml_tensor* token_embd = nullptr;    // [n_embd, n_vocab]
  ggml_tensor* output_norm = nullptr;   // [n_embd]
  ggml_tensor* output = nullptr;        // [n_embd, n_vocab]; token_embd itself where tied
  ggml_tensor* rope_factors = nullptr;  // [rope_dims / 2] or null
  std::vector<Layer> layers;
};

// Shape of one batch: rows that do not see each other, each of row_tokens tokens.
struct BatchShape {
  std::uint32_t rows = 1;
  std::uint32_t row_tokens = 256;
  std::uint32_t tokens() const { return rows * row_tokens; }
};

struct DecoderInputs {
  ggml_tensor* tokens = nullptr;     // I32 [rows * row_tokens]
  ggml_tensor* positions = nullptr;  // I32 [rows * row_tokens]
  ggml_tensor* mask = nullptr;       // F32 [row_tokens, row_tokens, 1, rows]: 0 or -infinity
};

struct DecoderOutputs {
  std::vector<ggml_tensor*> layers;  // [n_embd, tokens] after each layer
  ggml_tensor* hidden = nullptr;     // [n_embd, tokens] after the final norm
};

// Adds the forward pass to `context`. Only operations that have a backward form in ggml.
DecoderOutputs build_decoder(ggml_context* context, const Decoder& decoder, const DecoderInputs& inputs,
                             const BatchShape& shape);

}  // namespace molly::training
