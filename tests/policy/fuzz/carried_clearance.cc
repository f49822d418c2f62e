#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "policy/profile.h"

// Whatever is understood means the same after a round trip.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto carried = molly::policy::parse_carried({reinterpret_cast<const char*>(data), size});
  if (!carried) return 0;
  const auto again = molly::policy::parse_carried(molly::policy::serialise(*carried));
  if (!again || *again != *carried) std::abort();
  return 0;
}
