#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/os/memory.h"
#include "gguf/tensor_type.h"

namespace molly::sizing {

// A processor other than the CPU, as ggml's backends find it.
struct Accelerator {
  std::string name;         // "Vulkan0"
  std::string description;  // "NVIDIA H200"
  std::string kind;         // "gpu", "integrated gpu" or "accelerator"
  std::uint64_t total_bytes = 0;
  std::uint64_t available_bytes = 0;
};

// What a model can be given.
struct Device {
  std::uint32_t cores = 1;  // that this process may use at a time
  base::MemoryState memory;
  std::vector<Accelerator> accelerators;
  // Types of weights that ggml copies into a layout of its own for this processor.
  std::vector<gguf::TensorType> repacked;
  // The processor multiplies bytes (AVX-512 VNNI): quantized weights are packed for the engine's own kernels.
  bool multiplies_bytes = false;
};

// This machine, or the container or service that we run in. Accelerators are not looked for: that takes ggml.
Device this_device();

// What models may take together when nobody said otherwise: 70 % of what is available.
std::uint64_t memory_for_models(const Device& device);

}  // namespace molly::sizing
