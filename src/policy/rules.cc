#include "policy/rules.h"

#include <format>

namespace molly::policy {
namespace {

constexpr auto config_invalid = ErrorCode::config_invalid;

Result<void> validate_t3(const Grant& grant) {
  if (!grant.target && !grant.provider)
    return failure(config_invalid, "A grant for T3 names one provider or one target.", "provider");
  if (grant.members.empty())
    return failure(config_invalid, "A grant for T3 names its members (\"owner\" is whoever uses this machine).",
                   "members");
  if (grant.max_confidentiality != labels::Confidentiality::public_)
    return failure(config_invalid, "A grant for T3 lets only \"public\" pass until detectors exist.",
                   "max_confidentiality");
  return {};
}

bool is_wildcard(const std::optional<std::string>& name) {
  return name && (name->empty() || name->find('*') != std::string::npos);
}

}  // namespace

Result<void> validate(const Defaults& defaults) {
  if (defaults.max_tier <= Tier::t1) return {};
  return failure(config_invalid, "The ceiling without a grant is \"T0\" or \"T1\": a [[grant]] opens T2 and T3.",
                 "max_tier");
}

Result<void> validate(const Pin& pin) {
  if (!is_wildcard(pin.application) && !is_wildcard(pin.member) && !is_wildcard(pin.role) && !is_wildcard(pin.model))
    return {};
  return failure(config_invalid, "A pin matches exactly, without \"*\": leave out what need not match.", "match");
}

Result<void> validate(const Grant& grant) {
  if (grant.tier < Tier::t2)
    return failure(config_invalid, "A grant opens T2 or T3: T0 and T1 are open up to defaults.max_tier.", "tier");
  if (is_wildcard(grant.provider))
    return failure(config_invalid, "A grant names one provider, without \"*\".", "provider");
  if (is_wildcard(grant.target)) return failure(config_invalid, "A grant names one target, without \"*\".", "target");
  for (const MemberPattern& member : grant.members)
    if (is_wildcard(member.name))
      return failure(config_invalid, "A member is a name or \"role:NAME\", without \"*\".", "members");
  return grant.tier == Tier::t3 ? validate_t3(grant) : Result<void>{};
}

Result<void> validate(const Rules& rules) {
  if (rules.pins.size() > Rules::max_rules || rules.grants.size() > Rules::max_rules)
    return failure(config_invalid, std::format("At most {} pins and {} grants.", Rules::max_rules, Rules::max_rules));
  if (auto valid = validate(rules.defaults); !valid) return valid;
  for (const Pin& pin : rules.pins)
    if (auto valid = validate(pin); !valid) return valid;
  for (const Grant& grant : rules.grants)
    if (auto valid = validate(grant); !valid) return valid;
  return {};
}

}  // namespace molly::policy
