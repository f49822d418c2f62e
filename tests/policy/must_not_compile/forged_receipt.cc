#include "common.h"

// EXPECT: is private within this context

namespace molly {
void forged_receipt() { audit::Receipt receipt(audit::Durability::synced, 1, audit::Record{}); }
}  // namespace molly
