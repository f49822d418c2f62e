#include "engine/model/architecture.h"

#include <algorithm>
#include <array>

#include "engine/model/architectures/dense.h"

namespace molly::engine {

std::span<const Architecture> architectures() {
  // Mistral's models come as "llama" or, later ones, as "mistral3", which differs in nothing that we support.
  static constexpr std::array all{
      Architecture{"llama", RopePairs::neighbours, llama_weights, llama_layers},
      Architecture{"mistral3", RopePairs::neighbours, llama_weights, llama_layers},
      Architecture{"qwen2", RopePairs::halves, qwen2_weights, llama_layers},
      Architecture{"qwen3", RopePairs::halves, qwen3_weights, qwen3_layers},
  };
  return all;
}

const Architecture* find_architecture(std::string_view name) {
  const auto all = architectures();
  const auto found = std::ranges::find(all, name, &Architecture::name);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace molly::engine
