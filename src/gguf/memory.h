#pragma once

#include <cstdint>

#include "gguf/model_file.h"

namespace molly::gguf {

// Bytes of memory that serving a model takes: an estimate that errs to the high side.
struct MemoryEstimate {
  std::uint64_t weights = 0;
  std::uint64_t key_value_cache = 0;
  std::uint64_t compute = 0;  // activations, logits and the runtime itself
  std::uint64_t total() const { return weights + key_value_cache + compute; }
};

// For `context` tokens in all (every slot together), with keys and values stored as `cache_type`. A context of 0
// means the trained length. Sums saturate instead of wrapping: a hostile header gives a huge estimate, not a small one.
MemoryEstimate estimate_memory(const ModelFile& model, std::uint64_t context, TensorType cache_type = TensorType::f16);

}  // namespace molly::gguf
