#include <cstdint>

#include "../adapters_checks.h"
#include "engine/adapters/lora_formats.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace molly::engine;
  auto base = small_base();
  base.projections[static_cast<std::size_t>(Projection::attn_v)] = {32, 32};  // whole blocks of quantized numbers
  const auto file = parse_lora_gguf(bytes_in_memory({data, data + size}), base);
  if (file) check_adapter(*file, base);
  return 0;
}
