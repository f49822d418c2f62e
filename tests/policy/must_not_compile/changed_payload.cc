#include "common.h"

// EXPECT: is private within this context

namespace molly {
void changed_payload() {
  policy::Payload<policy::Raw> payload = a_raw_payload();
  payload.bytes_ += "more";
}
}  // namespace molly
