#pragma once

#include "engine/model/architecture.h"

// Weights and graphs of the dense decoders, as architecture.cc lists them.
namespace molly::engine {

Weights llama_weights(const ModelConfig& config, WeightMap& map);
Weights qwen2_weights(const ModelConfig& config, WeightMap& map);
Weights qwen3_weights(const ModelConfig& config, WeightMap& map);

ggml_tensor* llama_layers(ForwardGraph& graph, ggml_tensor* embeddings);
ggml_tensor* qwen3_layers(ForwardGraph& graph, ggml_tensor* embeddings);

}  // namespace molly::engine
