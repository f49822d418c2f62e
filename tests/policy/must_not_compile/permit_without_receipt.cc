#include "common.h"

// EXPECT: no matching function

namespace molly {
void permit_without_receipt() { (void)policy::authorise<Tier::t0>(a_clearance(), "nano", a_raw_payload()); }
}  // namespace molly
