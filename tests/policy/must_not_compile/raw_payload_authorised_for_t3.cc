#include "common.h"

// EXPECT: no matching function

namespace molly {
void raw_payload_authorised_for_t3() {
  (void)policy::authorise<Tier::t3>(a_clearance(), "acme", a_raw_payload(), a_receipt());
}
}  // namespace molly
