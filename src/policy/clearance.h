#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "core/tier.h"
#include "labels/label.h"
#include "policy/decide.h"
#include "policy/profile.h"

namespace molly::policy {

class Engine;

// Why a target is not in a clearance: a code for programs, a sentence that names the rule for people.
struct Exclusion {
  std::string target;
  Tier tier = Tier::t0;
  std::string code;      // a Verdict's name, "grant_expired" or "removed"
  std::string sentence;  // "T3 needs a grant, and grant 2 (provider acme) is not for member ana."
};

// One target's part of a decision, allowed or not.
struct TargetDecision {
  std::string target;
  Tier tier = Tier::t0;
  std::string zone;
  bool allowed = false;
  std::string code;      // "allowed", or as Exclusion::code
  std::string sentence;  // why, naming the rule
  std::string proof;     // how the tier was verified, or why it could not be
};

// The targets that policy allows for one request. Made only by Engine::clear; every operation returns the
// same set or a smaller one. A value: copies share the engine; not synchronised. Keeps its engine alive, so
// a reload does not change what was decided.
class Clearance {
 public:
  bool allows(std::string_view target) const;
  bool empty() const;
  std::vector<std::string_view> targets() const;  // names, in the configuration's order
  std::vector<Exclusion> exclusions() const;      // one for every other target; worded on each call
  std::vector<TargetDecision> decisions() const;  // one for every target; worded on each call
  // Of one target, by its place in Engine::targets(): "allowed" or as Exclusion::code, and the rule that decided,
  // by its place in Engine::rule_names(); no_rule where none did, e.g. a tier that needs no grant.
  std::string_view code(std::size_t target) const;
  std::uint16_t deciding_rule(std::size_t target) const;
  static constexpr std::uint16_t no_rule = 0xffff;

  const labels::Label& label() const { return label_; }
  // What set each part of the label and the ceiling: "confidential by pin 1 (application clinic)".
  std::vector<std::string> label_sources() const;
  bool declared_public() const { return ask_.declared_public; }
  const Digest& policy_digest() const;
  const Engine& engine() const { return *engine_; }

  // Narrowed by what another Molly allows.
  [[nodiscard]] Clearance intersect(const CarriedClearance& carried) const;
  // Without one target, e.g. one that failed.
  [[nodiscard]] Clearance without(std::string_view target) const;
  // What is left once the request's context also holds data with this label, e.g. a tool's result.
  [[nodiscard]] Clearance joined_with(const labels::Label& label) const;

  // What another Molly may do on our behalf: the highest tier, the zones and the T3 providers that this
  // clearance's targets and the grants behind it reach, and its label.
  CarriedClearance to_carry() const;
  std::string serialise() const;  // to_carry() as header text

 private:
  friend class Engine;

  // What stands behind a verdict that is not the label's and the target's alone.
  enum class Cause : std::uint8_t { rules, expired_grant, other_members_grant, carried, removed };
  struct Entry {
    Verdict verdict = Verdict::not_opened;
    Cause cause = Cause::rules;
    Threshold threshold = shut;
    std::uint16_t grant = no_rule;  // the grant that gave the threshold, or the nearest miss
  };

  explicit Clearance(std::shared_ptr<const Engine> engine);
  void narrow();
  void narrow_to(const CarriedClearance& carried);
  bool grant_applies(std::uint16_t grant) const;
  std::uint16_t pin_against_zone(std::size_t target) const;
  std::uint16_t pin_against_tier(std::size_t target) const;
  std::string sentence_for(std::size_t target) const;
  std::string zone_sentence(std::size_t target) const;
  std::string ceiling_sentence(std::size_t target) const;
  std::string not_opened_sentence(std::size_t target) const;
  std::string confidentiality_source() const;

  std::shared_ptr<const Engine> engine_;
  labels::Label label_;
  Ask ask_;
  std::string member_;
  std::optional<labels::Confidentiality> declared_;
  std::optional<Tier> declared_tier_;
  std::optional<CarriedClearance> carried_;
  std::vector<Entry> entries_;         // one for each target of the engine
  std::vector<std::uint16_t> pins_;    // that matched
  std::vector<std::uint16_t> grants_;  // that matched and are in force
};

}  // namespace molly::policy
