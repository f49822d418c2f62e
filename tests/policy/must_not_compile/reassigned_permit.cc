#include "common.h"

// EXPECT: use of deleted function

namespace molly {
void reassigned_permit() {
  policy::Permit<Tier::t0> permit = a_permit<Tier::t0>();
  permit = a_permit<Tier::t0>();
}
}  // namespace molly
