#include "common.h"

// EXPECT: is private within this context

namespace molly {
void widened_clearance() {
  policy::Clearance clearance = a_clearance();
  clearance.entries_.front().verdict = policy::Verdict::allowed;
}
}  // namespace molly
