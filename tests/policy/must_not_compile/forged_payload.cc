#include "common.h"

// EXPECT: is private within this context

namespace molly {
void forged_payload() { policy::Payload<policy::Public> payload("body", Digest{}); }
}  // namespace molly
