#pragma once

#include <cstdint>

#include "core/tier.h"
#include "labels/packed.h"

// The inner decision: may data with this label go to this target? A pure function of a few small integers,
// checked over all of them by tests/policy/exhaustive. Everything else in this folder prepares its arguments
// or words its answer.
namespace molly::policy {

enum class Verdict : std::uint8_t {
  allowed,
  unproven,         // the target's tier could not be verified
  zone,             // its zone is not among those that the label allows
  ceiling,          // its tier is above the request's highest tier
  not_opened,       // no rule opens it for this request: the default ceiling, or no grant
  confidentiality,  // the label is above the highest that the rule which opens it lets through
  undeclared,       // T3 takes only what was explicitly declared public
  tainted,          // T3 takes only what comes from trusted sources
};

// How far a target is open to a request: labels below the threshold may pass. A threshold, not one bit a
// class: with bits a rule could let confidential data through and stop internal data.
using Threshold = std::uint8_t;
inline constexpr Threshold shut = 0;
inline constexpr Threshold wide_open = 4;
constexpr Threshold up_to(labels::Confidentiality highest) {
  return static_cast<Threshold>(static_cast<std::uint8_t>(highest) + 1);
}

struct PackedTarget {
  Tier tier = Tier::t3;
  std::uint64_t zone = 0;  // exactly one bit
  bool proven = false;
};

struct Ask {
  labels::PackedLabel label;
  Tier ceiling = Tier::t0;
  bool declared_public = false;
};

constexpr Verdict decide(const Ask& ask, const PackedTarget& target, Threshold threshold) {
  if (!target.proven) return Verdict::unproven;
  if ((ask.label.zones & target.zone) == 0) return Verdict::zone;
  if (target.tier > ask.ceiling) return Verdict::ceiling;
  if (threshold == shut) return Verdict::not_opened;
  if (static_cast<Threshold>(ask.label.confidentiality) >= threshold) return Verdict::confidentiality;
  if (target.tier < Tier::t3) return Verdict::allowed;
  if (!ask.declared_public || ask.label.confidentiality != labels::Confidentiality::public_) return Verdict::undeclared;
  if (ask.label.integrity != labels::Integrity::trusted) return Verdict::tainted;
  return Verdict::allowed;
}

}  // namespace molly::policy
