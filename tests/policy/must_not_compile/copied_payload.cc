#include "common.h"

// EXPECT: use of deleted function

namespace molly {
void copied_payload() {
  policy::Payload<policy::Raw> payload = a_raw_payload();
  policy::Payload<policy::Raw> copy = payload;
}
}  // namespace molly
