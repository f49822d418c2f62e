#include <cstdint>
#include <cstring>
#include <span>

#include "../adapters_checks.h"
#include "engine/adapters/lora_formats.h"

// An input is the configuration's length in two bytes, the configuration, and the file of numbers.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace molly::engine;
  std::uint16_t length = 0;
  if (size < sizeof length) return 0;
  std::memcpy(&length, data, sizeof length);
  const auto rest = std::span(data, size).subspan(sizeof length);
  if (length > rest.size()) return 0;
  const std::string_view config(reinterpret_cast<const char*>(rest.data()), length);
  auto base = small_base();
  base.permuted_heads = 2;
  base.permuted_heads_kv = 1;
  const auto file = parse_lora_peft(bytes_in_memory({rest.begin() + length, rest.end()}), config, base);
  if (file) check_adapter(*file, base);
  return 0;
}
