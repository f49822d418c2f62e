#include "common.h"

// EXPECT: is private within this context

namespace molly {
void promoted_receipt() { a_receipt().durability_ = audit::Durability::synced; }
}  // namespace molly
