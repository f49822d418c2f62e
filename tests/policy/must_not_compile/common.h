#pragma once

#include <optional>

#include "policy/engine.h"
#include "policy/permit.h"

// What every program here may use. A driver as egress has them: it takes a permit and a payload of one tier.
// check.sh explains EXPECT.
namespace molly {

template <Tier tier>
void send(policy::Permit<tier> permit, policy::Payload<policy::Wire<tier>> payload);

policy::Clearance a_clearance();
policy::Payload<policy::Raw> a_raw_payload();
policy::Payload<policy::Public> a_public_payload();
audit::Receipt a_receipt();
template <Tier tier>
policy::Permit<tier> a_permit();

}  // namespace molly
