#include "common.h"

// EXPECT: specialization of

namespace molly {
template <>
class policy::Permit<Tier::t3> {};
}  // namespace molly
