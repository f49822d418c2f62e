#include "engine/model/architectures/dense.h"

namespace molly::engine {

Weights qwen3_weights(const ModelConfig& config, WeightMap& map) {
  Weights out = llama_weights(config, map);
  for (std::uint32_t layer = 0; layer < config.n_layer; ++layer) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    out.layers[layer].q_norm = map.plain(prefix + "attn_q_norm.weight", config.head_dim);
    out.layers[layer].k_norm = map.plain(prefix + "attn_k_norm.weight", config.head_dim);
  }
  return out;
}

}  // namespace molly::engine
