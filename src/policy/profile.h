#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/tier.h"
#include "labels/label.h"

namespace molly::policy {

// What another Molly allows for a request that it hands on, as header x-molly-clearance says it. It can
// only narrow what is allowed here, so nobody gains by forging it.
struct CarriedClearance {
  Tier max_tier = Tier::t0;
  labels::NameSet zones;         // of the targets that may answer
  labels::NameSet providers;     // of T3 targets that may answer
  bool declared_public = false;  // the request was explicitly declared public there
  labels::Label label;

  bool operator==(const CarriedClearance&) const = default;
};

// "tier=T1;zones=device+lan;providers=-;declared=no;label=internal/trusted/*/*"; declared: "public" or "no".
std::string serialise(const CarriedClearance& carried);
// Strict: exactly that form. A clearance that cannot be read must refuse the request, never be ignored.
Result<CarriedClearance> parse_carried(std::string_view text);

// What a request may do, as far as the request and its sender say: the input of policy.
struct SovereigntyProfile {
  labels::Label label;                              // of the content, from what is known of its sources
  std::optional<labels::Confidentiality> declared;  // x-molly-confidentiality; absent: the default's floor
  std::optional<Tier> max_tier;                     // x-molly-max-tier
  std::string application;                          // x-molly-application
  std::string member;                               // empty: local use without a key
  std::vector<std::string> roles;
  std::string model;                        // what `model` asked for, as written
  std::optional<CarriedClearance> carried;  // x-molly-clearance
};

}  // namespace molly::policy
