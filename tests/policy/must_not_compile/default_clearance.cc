#include "common.h"

// EXPECT: no matching function

namespace molly {
void default_clearance() { policy::Clearance clearance; }
}  // namespace molly
