#include <cstdint>
#include <cstdlib>
#include <span>

#include "gguf/memory.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace molly::gguf;
  const auto model = parse_model_file(std::span(data, size), size);
  if (!model) return 0;
  if (model->tensor_bytes > size) std::abort();
  const auto estimate = estimate_memory(*model, 0);
  if (estimate.total() < estimate.weights) std::abort();
  return 0;
}
