#include "policy/engine.h"

#include <algorithm>
#include <format>

#include "audit/digest.h"

namespace molly::policy {
namespace {

using std::chrono::system_clock;

void add(std::string& out, std::string_view text) {
  std::format_to(std::back_inserter(out), "{}:{},", text.size(), text);
}
void add_optional(std::string& out, const std::optional<std::string>& text) {
  if (text) add(out, *text);
  out += ';';
}

std::string canonical(const Pin& pin) {
  std::string out = "pin;";
  for (const auto* text : {&pin.application, &pin.member, &pin.role, &pin.model}) add_optional(out, *text);
  add(out, labels::to_string(pin.label));
  if (pin.max_tier) add(out, to_string(*pin.max_tier));
  return out;
}

std::string canonical(const Grant& grant) {
  std::string out = "grant;";
  add(out, to_string(grant.tier));
  add_optional(out, grant.provider);
  add_optional(out, grant.target);
  add(out, labels::to_string(grant.zones));
  for (const MemberPattern& member : grant.members) add(out, (member.is_role ? "role:" : "name:") + member.name);
  add(out, labels::to_string(grant.max_confidentiality));
  if (grant.expires) add(out, std::format("{}", grant.expires->time_since_epoch().count()));
  return out;
}

std::string canonical(const TargetFacts& facts) {
  std::string out = "target;";
  for (const auto* text : {&facts.name, &facts.zone, &facts.provider, &facts.model, &facts.proof}) add(out, *text);
  add(out, to_string(facts.tier));
  add(out, facts.proven ? "proven" : "unproven");
  return out;
}

Digest digest_of(const Rules& rules, const std::vector<TargetFacts>& targets) {
  std::string text = "molly policy 1;";
  add(text, to_string(rules.defaults.max_tier));
  add(text, labels::to_string(rules.defaults.confidentiality));
  for (const Pin& pin : rules.pins) add(text, canonical(pin));
  for (const Grant& grant : rules.grants) add(text, canonical(grant));
  for (const TargetFacts& facts : targets) add(text, canonical(facts));
  return audit::sha256(text);
}

std::string_view member_name(const SovereigntyProfile& profile) {
  return profile.member.empty() ? "owner" : std::string_view(profile.member);
}

bool has_role(const SovereigntyProfile& profile, std::string_view role) {
  return std::ranges::find(profile.roles, role) != profile.roles.end();
}

bool matches(const Pin& pin, const SovereigntyProfile& profile) {
  return (!pin.application || *pin.application == profile.application) &&
         (!pin.member || *pin.member == member_name(profile)) && (!pin.role || has_role(profile, *pin.role)) &&
         (!pin.model || *pin.model == profile.model);
}

bool is_for(const Grant& grant, const SovereigntyProfile& profile) {
  if (grant.members.empty()) return true;
  return std::ranges::any_of(grant.members, [&](const MemberPattern& member) {
    return member.is_role ? has_role(profile, member.name) : member.name == member_name(profile);
  });
}

std::unexpected<Error> invalid(std::string sentence) {
  return failure(ErrorCode::config_invalid, std::move(sentence), "target");
}

}  // namespace

Engine::Engine(Rules rules, std::vector<TargetFacts> targets)
    : rules_(std::move(rules)), targets_(std::move(targets)) {}

Result<std::shared_ptr<const Engine>> Engine::create(Rules rules, std::vector<TargetFacts> targets) {
  if (auto valid = validate(rules); !valid) return std::unexpected(std::move(valid.error()));
  if (targets.size() > max_targets) return invalid(std::format("At most {} targets.", max_targets));
  const std::shared_ptr<Engine> engine(new Engine(std::move(rules), std::move(targets)));
  for (std::size_t i = 0; i < engine->targets_.size(); ++i)
    if (auto compiled = engine->compile_target(static_cast<std::uint16_t>(i)); !compiled)
      return std::unexpected(std::move(compiled.error()));
  for (const Grant& grant : engine->rules_.grants) engine->grants_.push_back(engine->compile_grant(grant));
  engine->digest_ = digest_of(engine->rules_, engine->targets_);
  return engine;
}

Result<void> Engine::compile_target(std::uint16_t index) {
  const TargetFacts& facts = targets_[index];
  if (facts.name.empty()) return invalid("A target has no name.");
  if (!labels::is_name(facts.zone)) return invalid(std::format("Target {} has no valid zone.", facts.name));
  if (!facts.provider.empty() && !labels::is_name(facts.provider))
    return invalid(std::format("Target {} has no valid provider.", facts.name));
  if (!index_.emplace(facts.name, index).second) return invalid(std::format("Two targets are named {}.", facts.name));
  auto zone = std::ranges::find(zones_, facts.zone);
  if (zone == zones_.end()) {
    if (zones_.size() == max_zones) return invalid(std::format("The targets have more than {} zones.", max_zones));
    zone = zones_.insert(zones_.end(), facts.zone);
  }
  packed_.push_back({facts.tier, std::uint64_t{1} << (zone - zones_.begin()), facts.proven});
  return {};
}

Engine::CompiledGrant Engine::compile_grant(const Grant& grant) const {
  CompiledGrant compiled{.threshold = up_to(grant.max_confidentiality)};
  for (std::uint16_t i = 0; i < targets_.size(); ++i) {
    const TargetFacts& facts = targets_[i];
    if (facts.tier == grant.tier && (!grant.provider || facts.provider == *grant.provider) &&
        (!grant.target || facts.name == *grant.target) && grant.zones.contains(facts.zone))
      compiled.targets.push_back(i);
  }
  return compiled;
}

Clearance Engine::clear(const SovereigntyProfile& profile, system_clock::time_point now) const {
  Clearance clearance(shared_from_this());
  const bool declared_there = profile.carried && profile.carried->declared_public;
  clearance.declared_ = profile.declared;
  if (!profile.declared && declared_there) clearance.declared_ = labels::Confidentiality::public_;
  clearance.declared_tier_ = profile.max_tier;
  clearance.member_ = member_name(profile);
  clearance.label_ = profile.label;
  clearance.label_.confidentiality =
      std::max(profile.label.confidentiality, clearance.declared_.value_or(rules_.defaults.confidentiality));
  clearance.ask_.ceiling = profile.max_tier.value_or(Tier::t3);
  clearance.ask_.declared_public = clearance.declared_ == labels::Confidentiality::public_;
  apply_pins(profile, clearance);
  apply_grants(profile, now, clearance);
  if (profile.carried) clearance.narrow_to(*profile.carried);
  clearance.narrow();
  return clearance;
}

void Engine::apply_pins(const SovereigntyProfile& profile, Clearance& clearance) const {
  for (std::uint16_t i = 0; i < rules_.pins.size(); ++i) {
    const Pin& pin = rules_.pins[i];
    if (!matches(pin, profile)) continue;
    clearance.pins_.push_back(i);
    clearance.label_ = join(clearance.label_, pin.label);
    if (pin.max_tier) clearance.ask_.ceiling = std::min(clearance.ask_.ceiling, *pin.max_tier);
  }
}

void Engine::apply_grants(const SovereigntyProfile& profile, system_clock::time_point now, Clearance& clearance) const {
  for (std::uint16_t i = 0; i < rules_.grants.size(); ++i) {
    const Grant& grant = rules_.grants[i];
    const bool expired = grant.expires && now >= *grant.expires;
    const bool in_force = !expired && is_for(grant, profile);
    if (in_force) clearance.grants_.push_back(i);
    for (const std::uint16_t target : grants_[i].targets) {
      Clearance::Entry& entry = clearance.entries_[target];
      if (in_force && entry.threshold < grants_[i].threshold) {
        entry = {entry.verdict, Clearance::Cause::rules, grants_[i].threshold, i};
      } else if (!in_force && entry.grant == Clearance::no_rule) {
        entry.cause = expired ? Clearance::Cause::expired_grant : Clearance::Cause::other_members_grant;
        entry.grant = i;
      }
    }
  }
}

std::uint64_t Engine::pack(const labels::NameSet& zones) const {
  if (zones.is_all()) return ~std::uint64_t{0};
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < zones_.size(); ++i)
    if (zones.contains(zones_[i])) bits |= std::uint64_t{1} << i;
  return bits;
}

labels::PackedLabel Engine::pack(const labels::Label& label) const {
  return {label.confidentiality, label.integrity, pack(label.zones)};
}

std::optional<std::size_t> Engine::index_of(std::string_view target) const {
  const auto found = index_.find(target);
  if (found == index_.end()) return std::nullopt;
  return found->second;
}

const TargetFacts* Engine::find(std::string_view target) const {
  const auto index = index_of(target);
  return index ? &targets_[*index] : nullptr;
}

bool Engine::knows_zone(std::string_view zone) const {
  const auto names = [zone](const labels::NameSet& zones) { return !zones.is_all() && zones.contains(zone); };
  return std::ranges::find(zones_, zone) != zones_.end() ||
         std::ranges::any_of(rules_.pins, [&](const Pin& pin) { return names(pin.label.zones); }) ||
         std::ranges::any_of(rules_.grants, [&](const Grant& grant) { return names(grant.zones); });
}

}  // namespace molly::policy
