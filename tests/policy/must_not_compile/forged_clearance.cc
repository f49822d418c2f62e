#include "common.h"

// EXPECT: is private within this context

namespace molly {
void forged_clearance() {
  std::shared_ptr<const policy::Engine> engine;
  policy::Clearance clearance(engine);
}
}  // namespace molly
