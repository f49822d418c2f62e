#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "audit/record.h"

// Whatever decodes has exactly one encoding: the bytes it came from.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto entry = molly::audit::decode(bytes);
  if (entry && molly::audit::encode(entry->sequence, entry->time, entry->record) != bytes) std::abort();
  return 0;
}
