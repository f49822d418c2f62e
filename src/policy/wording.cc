// The words of a decision: why each target is in a clearance or not, naming the rule.
#include <array>
#include <format>

#include "policy/clearance.h"
#include "policy/engine.h"
#include "policy/explain.h"

namespace molly::policy {
namespace {

std::string name_of(const Pin& pin, std::size_t index) {
  std::string match;
  for (const auto& [key, value] : {std::pair("application", &pin.application),
                                   {"member", &pin.member},
                                   {"role", &pin.role},
                                   {"model", &pin.model}})
    if (*value) match += std::format("{}{} {}", match.empty() ? "" : ", ", key, **value);
  return std::format("pin {} ({})", index + 1, match.empty() ? "every request" : match);
}

std::string name_of(const Grant& grant, std::size_t index) {
  std::string what(to_string(grant.tier));
  if (grant.provider) what += ", provider " + *grant.provider;
  if (grant.target) what += ", target " + *grant.target;
  return std::format("grant {} ({})", index + 1, what);
}

std::string allowed_sentence(Tier tier, const std::string& grant) {
  if (tier <= Tier::t1) return "Allowed: its tier needs no grant.";
  return std::format("Allowed by {}.", grant);
}

}  // namespace

std::uint16_t Clearance::pin_against_zone(std::size_t target) const {
  for (const std::uint16_t pin : pins_)
    if (!engine_->rules_.pins[pin].label.zones.contains(engine_->targets_[target].zone)) return pin;
  return no_rule;
}

std::uint16_t Clearance::pin_against_tier(std::size_t target) const {
  for (const std::uint16_t pin : pins_)
    if (const auto& highest = engine_->rules_.pins[pin].max_tier; highest && *highest < engine_->targets_[target].tier)
      return pin;
  return no_rule;
}

std::uint16_t Clearance::deciding_rule(std::size_t target) const {
  const Entry& entry = entries_[target];
  if (entry.cause == Cause::carried || entry.cause == Cause::removed) return no_rule;
  if (entry.verdict == Verdict::zone) return pin_against_zone(target);
  if (entry.verdict == Verdict::ceiling) return pin_against_tier(target);
  if (entry.verdict == Verdict::unproven || entry.grant == no_rule) return no_rule;
  return static_cast<std::uint16_t>(engine_->rules_.pins.size() + entry.grant);
}

std::string Clearance::zone_sentence(std::size_t target) const {
  const TargetFacts& facts = engine_->targets_[target];
  if (entries_[target].cause == Cause::carried)
    return std::format("The Molly that sent this request does not allow zone {}.", facts.zone);
  const std::uint16_t pin = pin_against_zone(target);
  if (pin == no_rule) return std::format("Its zone {} is not among those that the request allows.", facts.zone);
  return std::format("Its zone {} is not allowed by {}.", facts.zone, name_of(engine_->rules_.pins[pin], pin));
}

std::string Clearance::ceiling_sentence(std::size_t target) const {
  const std::string_view tier = to_string(engine_->targets_[target].tier);
  if (entries_[target].cause == Cause::carried)
    return std::format("The Molly that sent this request does not allow {}.", tier);
  const std::uint16_t pin = pin_against_tier(target);
  if (pin == no_rule) return std::format("{} is above the highest tier that the request or its key allows.", tier);
  const Pin& rule = engine_->rules_.pins[pin];
  return std::format("{} is above the highest tier {} of {}.", tier, to_string(*rule.max_tier), name_of(rule, pin));
}

std::string Clearance::not_opened_sentence(std::size_t target) const {
  const TargetFacts& facts = engine_->targets_[target];
  const Entry& entry = entries_[target];
  if (entry.cause == Cause::removed) return "It was taken out of this request's clearance.";
  if (entry.cause == Cause::carried)
    return std::format("The Molly that sent this request does not allow provider {}.", facts.provider);
  if (facts.tier <= Tier::t1)
    return std::format("{} is above the default ceiling {} (defaults.max_tier).", to_string(facts.tier),
                       to_string(engine_->rules_.defaults.max_tier));
  if (entry.grant == no_rule)
    return std::format("{} needs a grant, and none opens it (provider {}, zone {}).", to_string(facts.tier),
                       facts.provider.empty() ? "none" : facts.provider, facts.zone);
  const Grant& grant = engine_->rules_.grants[entry.grant];
  if (entry.cause == Cause::expired_grant)
    return std::format("{} needs a grant, and {} expired on {:%F}.", to_string(facts.tier), name_of(grant, entry.grant),
                       *grant.expires);
  return std::format("{} needs a grant, and {} is not for member {}.", to_string(facts.tier),
                     name_of(grant, entry.grant), member_);
}

std::string Clearance::confidentiality_source() const {
  for (const std::uint16_t pin : pins_)
    if (engine_->rules_.pins[pin].label.confidentiality == label_.confidentiality)
      return "by " + name_of(engine_->rules_.pins[pin], pin);
  if (carried_ && carried_->label.confidentiality == label_.confidentiality) return "by the Molly that sent it";
  if (declared_ == label_.confidentiality) return "as declared";
  if (!declared_ && engine_->rules_.defaults.confidentiality == label_.confidentiality)
    return "by default (defaults.confidentiality), since nothing was declared";
  return "by its content";
}

std::string Clearance::sentence_for(std::size_t target) const {
  const Entry& entry = entries_[target];
  const TargetFacts& facts = engine_->targets_[target];
  const std::string grant =
      entry.grant == no_rule ? std::string() : name_of(engine_->rules_.grants[entry.grant], entry.grant);
  switch (entry.verdict) {
    case Verdict::allowed: return allowed_sentence(facts.tier, grant);
    case Verdict::unproven:
      return std::format("Its tier {} is not proven: {}", to_string(facts.tier),
                         facts.proof.empty() ? "nothing was checked." : facts.proof);
    case Verdict::zone: return zone_sentence(target);
    case Verdict::ceiling: return ceiling_sentence(target);
    case Verdict::not_opened: return not_opened_sentence(target);
    case Verdict::confidentiality:
      return std::format("The request is {} {}, and {} lets at most {} pass.", to_string(label_.confidentiality),
                         confidentiality_source(), grant,
                         to_string(static_cast<labels::Confidentiality>(entry.threshold - 1)));
    case Verdict::undeclared:
      return "T3 takes only what is explicitly declared public (x-molly-confidentiality: public).";
    case Verdict::tainted: return "T3 takes only trusted content, and the request holds tainted content.";
  }
  return {};
}

std::string_view Clearance::code(std::size_t target) const {
  static constexpr std::array names{"allowed",    "unproven",        "zone",       "ceiling",
                                    "not_opened", "confidentiality", "undeclared", "tainted"};
  const Entry& entry = entries_[target];
  if (entry.cause == Cause::removed) return "removed";
  if (entry.verdict == Verdict::not_opened && entry.cause == Cause::expired_grant) return "grant_expired";
  return names[static_cast<std::size_t>(entry.verdict)];
}

std::vector<TargetDecision> Clearance::decisions() const {
  std::vector<TargetDecision> all;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const TargetFacts& facts = engine_->targets_[i];
    all.push_back({facts.name, facts.tier, facts.zone, entries_[i].verdict == Verdict::allowed, std::string(code(i)),
                   sentence_for(i), facts.proof});
  }
  return all;
}

std::vector<Exclusion> Clearance::exclusions() const {
  std::vector<Exclusion> excluded;
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].verdict != Verdict::allowed)
      excluded.push_back({engine_->targets_[i].name, engine_->targets_[i].tier, std::string(code(i)), sentence_for(i)});
  return excluded;
}

std::vector<std::string> Clearance::label_sources() const {
  std::vector<std::string> sources{std::format("{} {}", to_string(label_.confidentiality), confidentiality_source())};
  for (const std::uint16_t index : pins_) {
    const Pin& pin = engine_->rules_.pins[index];
    if (!pin.label.zones.is_all())
      sources.push_back(std::format("zones {} by {}", to_string(pin.label.zones), name_of(pin, index)));
    if (pin.max_tier) sources.push_back(std::format("at most {} by {}", to_string(*pin.max_tier), name_of(pin, index)));
  }
  if (declared_tier_)
    sources.push_back(std::format("at most {} by the request or its key", to_string(*declared_tier_)));
  if (carried_)
    sources.push_back(std::format("at most {} in zones {} by the Molly that sent it", to_string(carried_->max_tier),
                                  to_string(carried_->zones)));
  return sources;
}

std::vector<std::string> Engine::rule_names() const {
  std::vector<std::string> names;
  names.reserve(rules_.pins.size() + rules_.grants.size());
  for (std::size_t i = 0; i < rules_.pins.size(); ++i) names.push_back(name_of(rules_.pins[i], i));
  for (std::size_t i = 0; i < rules_.grants.size(); ++i) names.push_back(name_of(rules_.grants[i], i));
  return names;
}

Decision explain(const Clearance& clearance) {
  return {hex(clearance.policy_digest()), labels::to_string(clearance.label()), clearance.declared_public(),
          clearance.label_sources(), clearance.decisions()};
}

std::string to_text(const Decision& decision) {
  std::string text = std::format("policy {}\nlabel  {}\n", decision.policy_digest.substr(0, 16), decision.label);
  for (const std::string& source : decision.label_sources) text += std::format("       {}\n", source);
  for (const TargetDecision& target : decision.targets)
    text += std::format("{} {} ({}, {}): {}\n", target.allowed ? "+" : "-", target.target, to_string(target.tier),
                        target.zone, target.sentence);
  return text;
}

Error refusal(const Clearance& clearance) {
  std::string message = "Policy allows no target for this request.";
  for (const Exclusion& exclusion : clearance.exclusions())
    message += std::format(" {}: {}", exclusion.target, exclusion.sentence);
  return {ErrorCode::forbidden, std::move(message), ""};
}

}  // namespace molly::policy
