#include "common.h"

// EXPECT: could not convert

namespace molly {
void raw_payload_to_t3() { send<Tier::t3>(a_permit<Tier::t3>(), a_raw_payload()); }
}  // namespace molly
