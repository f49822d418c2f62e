#include "common.h"

namespace molly {

void legal() {
  send<Tier::t3>(a_permit<Tier::t3>(), a_public_payload());
  send<Tier::t0>(a_permit<Tier::t0>(), a_raw_payload());
  auto permit = policy::authorise<Tier::t1>(a_clearance(), "office", a_raw_payload(), a_receipt());
  if (permit) (void)permit->spend("office", Digest{});
  policy::Clearance smaller = a_clearance().without("office").joined_with({});
  (void)smaller.allows("office");
}
}  // namespace molly
