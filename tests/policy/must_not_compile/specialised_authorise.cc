#include "common.h"

// EXPECT: after instantiation

namespace molly {
template <>
Result<policy::Permit<Tier::t3>> policy::authorise<Tier::t3>(const policy::Clearance&, std::string_view,
                                                             const policy::Payload<policy::Public>&, audit::Receipt) {
  return failure(ErrorCode::internal, "");
}
}  // namespace molly
