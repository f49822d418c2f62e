#include "common.h"

// EXPECT: is private within this context

namespace molly {
void forged_permit() { policy::Permit<Tier::t0> permit("nano", TraceId::generate(), Digest{}, 1); }
}  // namespace molly
