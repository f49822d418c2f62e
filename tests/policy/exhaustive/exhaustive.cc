// Enumerates the shipped lattice and decision code over all of their inputs (with a few zones), against laws and
// against a reference predicate written down independently; then whole engines over many small rule sets.
// Prints how many distinct states it checked and how long that took; fails on the first violation.
#include <array>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "policy/decide.h"
#include "policy/engine.h"

namespace molly::policy {
namespace {

using labels::Confidentiality;
using labels::Integrity;
using labels::PackedLabel;

constexpr std::array confidentialities{Confidentiality::public_, Confidentiality::internal,
                                       Confidentiality::confidential, Confidentiality::secret};
constexpr std::array integrities{Integrity::trusted, Integrity::tainted};
constexpr std::array<Threshold, 5> thresholds{0, 1, 2, 3, 4};

void require(bool holds, const char* law) {
  if (holds) return;
  std::printf("VIOLATED: %s\n", law);
  std::exit(1);
}

std::vector<PackedLabel> all_labels(unsigned zones) {
  std::vector<PackedLabel> all;
  for (const auto confidentiality : confidentialities)
    for (const auto integrity : integrities)
      for (std::uint64_t set = 0; set < (1u << zones); ++set) all.push_back({confidentiality, integrity, set});
  return all;
}

// join makes the labels a semilattice of which flows_to is the order.
std::uint64_t check_lattice() {
  std::uint64_t states = 0;
  const auto all = all_labels(5);
  for (const PackedLabel a : all) {
    require(join(a, a) == a, "join is idempotent");
    for (const PackedLabel b : all) {
      const PackedLabel joined = join(a, b);
      require(joined == join(b, a), "join is commutative");
      require(flows_to(a, joined) && flows_to(b, joined), "join is an upper bound");
      require(flows_to(a, b) == (joined == b), "the order is that of join");
      for (const PackedLabel c : all) {
        require(join(joined, c) == join(a, join(b, c)), "join is associative");
        require(!(flows_to(a, c) && flows_to(b, c)) || flows_to(joined, c), "join is the least upper bound");
        ++states;
      }
    }
  }
  return states;
}

// What a dispatch must satisfy, in the words of the design and nothing of the code's shape.
bool is_legal(const Ask& ask, const PackedTarget& target, Threshold threshold) {
  const int confidentiality = static_cast<int>(ask.label.confidentiality);
  const bool zone_allowed = std::popcount(ask.label.zones & target.zone) == 1;
  const bool within_cap = confidentiality < threshold;
  const bool external_ok = ask.declared_public && confidentiality == 0 && ask.label.integrity == Integrity::trusted;
  return target.proven && zone_allowed && static_cast<int>(target.tier) <= static_cast<int>(ask.ceiling) &&
         within_cap && (target.tier != Tier::t3 || external_ok);
}

template <class Visit>
void for_each_target(unsigned zones, Visit visit) {
  for (const Tier tier : all_tiers)
    for (unsigned zone = 0; zone < zones; ++zone)
      for (const bool proven : {false, true}) visit(PackedTarget{tier, std::uint64_t{1} << zone, proven});
}

std::uint64_t check_decisions() {
  std::uint64_t states = 0;
  constexpr unsigned zones = 10;
  for (const PackedLabel label : all_labels(zones))
    for_each_target(zones, [&](const PackedTarget& target) {
      for (const Threshold threshold : thresholds)
        for (const Tier ceiling : all_tiers)
          for (const bool declared_public : {false, true}) {
            const Ask ask{label, ceiling, declared_public};
            require((decide(ask, target, threshold) == Verdict::allowed) == is_legal(ask, target, threshold),
                    "a dispatch is allowed exactly when it is legal");
            ++states;
          }
    });
  return states;
}

// Whatever makes a request stricter or a rule narrower never gains a target.
std::uint64_t check_monotonicity() {
  std::uint64_t states = 0;
  constexpr unsigned zones = 5;
  const auto all = all_labels(zones);
  const auto compare = [&](const Ask& ask, const Ask& stricter, const PackedTarget& target) {
    for (const Threshold threshold : thresholds) {
      const bool loose = decide(ask, target, threshold) == Verdict::allowed;
      for (Threshold narrower = 0; narrower <= threshold; ++narrower) {
        require(loose || decide(stricter, target, narrower) != Verdict::allowed, "stricter never gains");
        ++states;
      }
    }
  };
  for (const PackedLabel a : all)
    for (const PackedLabel b : all) {
      if (!flows_to(a, b)) continue;
      for_each_target(zones, [&](const PackedTarget& target) {
        for (const Tier ceiling : all_tiers)
          for (const Tier lower : all_tiers) {
            if (lower > ceiling) continue;
            compare({a, ceiling, true}, {b, lower, true}, target);
            compare({a, ceiling, true}, {b, lower, false}, target);
            compare({a, ceiling, false}, {b, lower, false}, target);
          }
      });
    }
  return states;
}

// One small set of rules as the reference sees it.
struct Policy {
  Tier default_ceiling;
  Confidentiality floor;
  int t2_up_to;  // -1: no grant
  bool t3_for_ana;
  int pinned_up_to_tier;  // -1: no pin
  Confidentiality pinned;
};

struct Situation {
  int declared;  // -1: undeclared
  Tier max_tier;
  unsigned zones;  // bits: device, lan, eu
  bool is_ana;
  bool tainted;
};

constexpr std::array<const char*, 3> zone_names{"device", "lan", "eu"};
constexpr std::array<unsigned, 4> zone_of_tier{0, 1, 2, 2};

labels::NameSet name_set(unsigned zones) {
  if (zones == 7) return labels::NameSet::all();
  std::vector<std::string> names;
  for (unsigned i = 0; i < 3; ++i)
    if (zones >> i & 1) names.emplace_back(zone_names[i]);
  return labels::NameSet::of(std::move(names));
}

bool is_legal(const Policy& policy, const Situation& situation, int tier) {
  int confidentiality = situation.declared >= 0 ? situation.declared : static_cast<int>(policy.floor);
  int ceiling = static_cast<int>(situation.max_tier);
  if (policy.pinned_up_to_tier >= 0) {
    confidentiality = std::max(confidentiality, static_cast<int>(policy.pinned));
    ceiling = std::min(ceiling, policy.pinned_up_to_tier);
  }
  if (tier > ceiling || !(situation.zones >> zone_of_tier[static_cast<std::size_t>(tier)] & 1)) return false;
  if (tier <= 1) return tier <= static_cast<int>(policy.default_ceiling);
  if (tier == 2) return confidentiality <= policy.t2_up_to;
  return policy.t3_for_ana && situation.is_ana && situation.declared == 0 && confidentiality == 0 && !situation.tainted;
}

std::shared_ptr<const Engine> make_engine(const Policy& policy) {
  Rules rules{.defaults = {policy.default_ceiling, policy.floor}};
  if (policy.t2_up_to >= 0)
    rules.grants.push_back({.tier = Tier::t2, .max_confidentiality = static_cast<Confidentiality>(policy.t2_up_to)});
  if (policy.t3_for_ana) rules.grants.push_back({.tier = Tier::t3, .provider = "acme", .members = {{false, "ana"}}});
  if (policy.pinned_up_to_tier >= 0)
    rules.pins.push_back(
        {.label = {.confidentiality = policy.pinned}, .max_tier = static_cast<Tier>(policy.pinned_up_to_tier)});
  std::vector<TargetFacts> targets;
  for (const Tier tier : all_tiers)
    targets.push_back({std::string(to_string(tier)), tier, zone_names[zone_of_tier[static_cast<std::size_t>(tier)]],
                       tier == Tier::t3 ? "acme" : "", "", true, ""});
  auto engine = Engine::create(std::move(rules), std::move(targets));
  require(engine.has_value(), "the rules are valid");
  return *engine;
}

unsigned allowed_set(const Clearance& clearance) {
  unsigned set = 0;
  for (const auto target : clearance.targets()) set |= 1u << (target[1] - '0');
  return set;
}

void check_operations(const Clearance& clearance, unsigned allowed) {
  const auto shrinks = [&](const Clearance& smaller) {
    require((allowed_set(smaller) & ~allowed) == 0, "a clearance only shrinks");
    require(labels::flows_to(clearance.label(), smaller.label()), "a clearance's label only rises");
  };
  shrinks(clearance.joined_with({.confidentiality = Confidentiality::internal}));
  shrinks(clearance.joined_with({.integrity = Integrity::tainted, .zones = name_set(5)}));
  shrinks(clearance.without("T1").joined_with({}));
  shrinks(clearance.intersect({.max_tier = Tier::t3, .declared_public = true}));
  const CarriedClearance carried = clearance.to_carry();
  require(allowed_set(clearance.intersect(carried)) == allowed, "what is carried gives the same answer here");
}

template <class Visit>
void for_each_policy(Visit visit) {
  for (const Tier ceiling : {Tier::t0, Tier::t1})
    for (const auto floor : confidentialities)
      for (int t2 = -1; t2 < 4; ++t2)
        for (const bool t3 : {false, true})
          for (int pinned_tier = -1; pinned_tier < 4; ++pinned_tier)
            for (const auto pinned : confidentialities) visit(Policy{ceiling, floor, t2, t3, pinned_tier, pinned});
}

std::uint64_t check_engines() {
  std::uint64_t states = 0;
  for_each_policy([&](const Policy& policy) {
    const auto engine = make_engine(policy);
    for (int declared = -1; declared < 4; ++declared)
      for (const Tier max_tier : all_tiers)
        for (unsigned zones = 0; zones < 8; ++zones)
          for (unsigned who = 0; who < 4; ++who) {
            const Situation situation{declared, max_tier, zones, (who & 1) != 0, (who & 2) != 0};
            SovereigntyProfile profile{.max_tier = max_tier, .member = situation.is_ana ? "ana" : "bob"};
            profile.label = {.integrity = situation.tainted ? Integrity::tainted : Integrity::trusted,
                             .zones = name_set(zones)};
            if (declared >= 0) profile.declared = static_cast<Confidentiality>(declared);
            const Clearance clearance = engine->clear(profile, {});
            const unsigned allowed = allowed_set(clearance);
            for (int tier = 0; tier < 4; ++tier, ++states)
              require((allowed >> tier & 1) == is_legal(policy, situation, tier), "the engine allows what is legal");
            if (states % 31 == 0) check_operations(clearance, allowed);
          }
  });
  return states;
}

}  // namespace
}  // namespace molly::policy

int main() {
  using Clock = std::chrono::steady_clock;
  using molly::policy::check_decisions, molly::policy::check_engines, molly::policy::check_lattice,
      molly::policy::check_monotonicity;
  const auto start = Clock::now();
  std::uint64_t total = 0;
  for (const auto& [name, check] : {std::pair("lattice laws", &check_lattice),
                                    {"decisions", &check_decisions},
                                    {"monotonicity", &check_monotonicity},
                                    {"whole engines", &check_engines}}) {
    const std::uint64_t states = check();
    total += states;
    std::printf("%-14s %12llu states\n", name, static_cast<unsigned long long>(states));
  }
  const std::chrono::duration<double> seconds = Clock::now() - start;
  std::printf("%llu distinct states, 0 illegal dispatches, 0 violations, %.1f s\n",
              static_cast<unsigned long long>(total), seconds.count());
  return total >= 100'000'000 ? 0 : 1;
}
