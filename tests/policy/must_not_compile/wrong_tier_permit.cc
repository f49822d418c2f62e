#include "common.h"

// EXPECT: could not convert

namespace molly {
void wrong_tier_permit() { send<Tier::t2>(a_permit<Tier::t1>(), a_raw_payload()); }
}  // namespace molly
