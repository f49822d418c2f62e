#include "engine/model/architectures/dense.h"

namespace molly::engine {

// As llama's, with biases on q, k and v, which linears() finds in the file.
Weights qwen2_weights(const ModelConfig& config, WeightMap& map) { return llama_weights(config, map); }

}  // namespace molly::engine
