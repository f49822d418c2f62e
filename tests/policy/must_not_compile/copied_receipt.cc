#include "common.h"

// EXPECT: use of deleted function

namespace molly {
void copied_receipt() {
  audit::Receipt receipt = a_receipt();
  audit::Receipt copy = receipt;
}
}  // namespace molly
