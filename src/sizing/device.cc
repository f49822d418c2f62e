#include "sizing/device.h"

#include "base/os/processors.h"

namespace molly::sizing {
namespace {

using gguf::TensorType;

// ggml 0.27, src/ggml-cpu: repack.cpp and amx.
std::vector<TensorType> repacked_here() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") == 0) return {};
  std::vector<TensorType> out{TensorType::q4_0, TensorType::q4_k, TensorType::iq4_nl};
  if (__builtin_cpu_supports("avx512f") != 0) out.push_back(TensorType::q2_k);
  return out;
#elif defined(__aarch64__)
  return {TensorType::q4_0, TensorType::q4_k, TensorType::q5_k, TensorType::q6_k, TensorType::q8_0, TensorType::iq4_nl};
#else
  return {};
#endif
}

}  // namespace

Device this_device() {
  return {.cores = base::usable_cores(),
          .memory = base::memory_state(),
          .accelerators = {},
          .repacked = repacked_here(),
          .multiplies_bytes = base::multiplies_bytes()};
}

std::uint64_t memory_for_models(const Device& device) { return device.memory.available_bytes / 10 * 7; }

}  // namespace molly::sizing
