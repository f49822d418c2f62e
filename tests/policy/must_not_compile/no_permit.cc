#include "common.h"

// EXPECT: could not convert

namespace molly {
void no_permit() { send<Tier::t0>({}, a_raw_payload()); }
}  // namespace molly
