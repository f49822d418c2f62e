#pragma once

#include <string>
#include <vector>

#include "core/error.h"
#include "core/tier.h"
#include "policy/clearance.h"

namespace molly::policy {

// A whole decision in words, for `molly policy explain` and for refusals.
struct Decision {
  std::string policy_digest;  // hexadecimal
  std::string label;          // labels::to_string
  bool declared_public = false;
  std::vector<std::string> label_sources;  // what set each part: "confidential by pin 1 (application clinic)"
  std::vector<TargetDecision> targets;     // every one, in the configuration's order
};

Decision explain(const Clearance& clearance);
std::string to_text(const Decision& decision);

// The 403 of an empty clearance: names each target and the rule that excluded it.
Error refusal(const Clearance& clearance);

}  // namespace molly::policy
