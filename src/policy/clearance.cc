#include "policy/clearance.h"

#include <algorithm>

#include "policy/engine.h"

namespace molly::policy {

// Every entry starts as allowed, which only narrow() may see: it turns entries the other way only.
Clearance::Clearance(std::shared_ptr<const Engine> engine) : engine_(std::move(engine)) {
  entries_.reserve(engine_->packed_.size());
  for (const PackedTarget& target : engine_->packed_) {
    const bool open = target.tier <= engine_->rules_.defaults.max_tier;
    entries_.push_back({Verdict::allowed, Cause::rules, open ? wide_open : shut, no_rule});
  }
}

void Clearance::narrow() {
  ask_.label = engine_->pack(label_);
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].verdict == Verdict::allowed)
      entries_[i].verdict = decide(ask_, engine_->packed_[i], entries_[i].threshold);
}

// Excludes what the other Molly does not allow, before narrow() looks at the joined label, so that the
// reason names it.
void Clearance::narrow_to(const CarriedClearance& carried) {
  const labels::NameSet zones = intersection(carried.zones, carried.label.zones);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const TargetFacts& facts = engine_->targets_[i];
    Entry& entry = entries_[i];
    if (entry.verdict != Verdict::allowed) continue;
    if (facts.tier > carried.max_tier)
      entry.verdict = Verdict::ceiling;
    else if (!zones.contains(facts.zone))
      entry.verdict = Verdict::zone;
    else if (facts.tier == Tier::t3 && !carried.providers.contains(facts.provider))
      entry.verdict = Verdict::not_opened;
    if (entry.verdict != Verdict::allowed) entry.cause = Cause::carried;
  }
  label_ = join(label_, carried.label);
  label_.zones = intersection(label_.zones, zones);
  ask_.ceiling = std::min(ask_.ceiling, carried.max_tier);
  ask_.declared_public = ask_.declared_public && carried.declared_public;
  carried_ =
      carried_
          ? CarriedClearance{std::min(carried_->max_tier, carried.max_tier), intersection(carried_->zones, zones),
                             intersection(carried_->providers, carried.providers),
                             carried_->declared_public && carried.declared_public, join(carried_->label, carried.label)}
          : carried;
}

bool Clearance::allows(std::string_view target) const {
  const auto index = engine_->index_of(target);
  return index && entries_[*index].verdict == Verdict::allowed;
}

bool Clearance::empty() const {
  return std::ranges::none_of(entries_, [](const Entry& entry) { return entry.verdict == Verdict::allowed; });
}

std::vector<std::string_view> Clearance::targets() const {
  std::vector<std::string_view> names;
  names.reserve(entries_.size());
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].verdict == Verdict::allowed) names.emplace_back(engine_->targets_[i].name);
  return names;
}

const Digest& Clearance::policy_digest() const { return engine_->digest(); }

Clearance Clearance::intersect(const CarriedClearance& carried) const {
  Clearance smaller = *this;
  smaller.narrow_to(carried);
  smaller.narrow();
  return smaller;
}

Clearance Clearance::without(std::string_view target) const {
  Clearance smaller = *this;
  const auto index = engine_->index_of(target);
  if (!index || smaller.entries_[*index].verdict != Verdict::allowed) return smaller;
  smaller.entries_[*index].verdict = Verdict::not_opened;
  smaller.entries_[*index].cause = Cause::removed;
  return smaller;
}

Clearance Clearance::joined_with(const labels::Label& label) const {
  Clearance smaller = *this;
  smaller.label_ = join(label_, label);
  smaller.narrow();
  return smaller;
}

// Whether a grant in force would open some target of its tier to this label, had we one.
bool Clearance::grant_applies(std::uint16_t grant) const {
  const PackedTarget imagined{engine_->rules_.grants[grant].tier, ~std::uint64_t{0}, true};
  return decide(ask_, imagined, engine_->grants_[grant].threshold) == Verdict::allowed;
}

// The receiver's own device is zone "device" there, whatever zone it is in from here: sending to it at all
// already allowed that.
CarriedClearance Clearance::to_carry() const {
  CarriedClearance carried{.declared_public = ask_.declared_public, .label = label_};
  std::vector<std::string> zones{"device"};
  std::vector<std::string> providers;
  bool any_zone = false;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const TargetFacts& facts = engine_->targets_[i];
    if (entries_[i].verdict != Verdict::allowed) continue;
    carried.max_tier = std::max(carried.max_tier, facts.tier);
    zones.push_back(facts.zone);
    if (facts.tier == Tier::t3) providers.push_back(facts.provider);
  }
  for (const std::uint16_t index : grants_) {
    const Grant& grant = engine_->rules_.grants[index];
    if (grant.target || !grant_applies(index)) continue;
    carried.max_tier = std::max(carried.max_tier, grant.tier);
    any_zone = any_zone || grant.zones.is_all();
    zones.insert(zones.end(), grant.zones.names().begin(), grant.zones.names().end());
    if (grant.tier == Tier::t3) providers.push_back(*grant.provider);
  }
  carried.zones = any_zone ? labels::NameSet::all() : labels::NameSet::of(std::move(zones));
  carried.providers = labels::NameSet::of(std::move(providers));
  if (carried_) {
    carried.max_tier = std::min(carried.max_tier, carried_->max_tier);
    carried.zones = intersection(carried.zones, carried_->zones);
    carried.providers = intersection(carried.providers, carried_->providers);
  }
  return carried;
}

std::string Clearance::serialise() const { return policy::serialise(to_carry()); }

}  // namespace molly::policy
