#include "common.h"

// EXPECT: use of deleted function

namespace molly {
void copied_permit() {
  policy::Permit<Tier::t0> permit = a_permit<Tier::t0>();
  policy::Permit<Tier::t0> copy = permit;
}
}  // namespace molly
