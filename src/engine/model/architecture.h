#pragma once

#include <span>
#include <string_view>

#include "core/error.h"
#include "engine/model/config.h"
#include "engine/model/weights.h"
#include "gguf/model_file.h"

namespace molly::engine {

class ForwardGraph;

// A family of models that the engine runs. To add one: a file that maps its weights, a file that writes its graph, and
// a line in architecture.cc.
struct Architecture {
  std::string_view name;  // general.architecture
  RopePairs rope_pairs;
  Weights (*map_weights)(const ModelConfig& config, WeightMap& map);
  // From the embeddings [n_embd, rows] to the state before the final norm.
  ggml_tensor* (*layers)(ForwardGraph& graph, ggml_tensor* embeddings);
};

std::span<const Architecture> architectures();
const Architecture* find_architecture(std::string_view name);  // null: not one of ours

}  // namespace molly::engine
