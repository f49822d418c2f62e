#pragma once

#include <cstdint>
#include <string>

#include "core/error.h"
#include "gguf/model_file.h"

namespace molly::engine {

// How rotary embedding pairs the numbers of a head: neighbours (2i, 2i+1), or halves (i, i + d/2).
enum class RopePairs : std::uint8_t { neighbours, halves };

// A dense decoder's shape and constants, from the metadata of its file.
struct ModelConfig {
  std::string architecture;
  std::uint32_t n_vocab = 0;
  std::uint32_t n_embd = 0;
  std::uint32_t n_layer = 0;
  std::uint32_t n_head = 0;
  std::uint32_t n_head_kv = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t n_ff = 0;
  std::uint32_t n_context = 0;  // trained length, tokens
  float norm_epsilon = 1e-5F;
  RopePairs rope_pairs = RopePairs::neighbours;
  std::uint32_t rope_dims = 0;
  float rope_base = 10'000;
  float rope_frequency_scale = 1;  // 1 / linear scaling factor

  std::uint32_t query_width() const { return n_head * head_dim; }
  std::uint32_t kv_width() const { return n_head_kv * head_dim; }
};

// The parts that all architectures name alike. invalid_request names the key that is missing, absurd or asks for
// something that is not supported, e.g. a kind of rope scaling.
Result<ModelConfig> read_dense_config(const gguf::ModelFile& file);

}  // namespace molly::engine
