#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/schedule/draft_source.h"

namespace molly::engine {

// What drafting and verifying 1, 2, ... tokens costs, relative to what a step costs each of its sequences.
using DraftCosts = std::vector<double>;

struct DraftPlan {
  std::uint32_t depth = 0;  // 0: do not draft now
  double speed = 1;         // expected, times that without drafts
  bool is_trial = false;    // to learn whether it pays by now
};

// Chooses how many tokens to draft for each kind of work, from each source, by what was accepted before, and none where
// drafting does not pay: expected tokens per step over what the step costs then, (1 - a^(d+1)) / (1 - a) / (1 + c d),
// theorem 3.8 of the paper with acceptance a, depth d and, for c d, what depth d really costs.
class AcceptanceGovernor {
 public:
  // `work` is adapter and task class. What is new is tried. What was turned off, or not used for other
  // reasons, is tried again after retry_after calls, and after twice as many each time that this was in vain; never
  // where even a source that is nearly always right would not pay.
  DraftPlan plan(const std::string& work, DraftKind source, const DraftCosts& costs);
  // `drafted` without those that were never compared because the sequence ended before.
  void note(const std::string& work, DraftKind source, std::uint32_t drafted, std::uint32_t accepted);
  double acceptance(const std::string& work, DraftKind source) const;

  static constexpr std::uint32_t trial_depth = 3;
  static constexpr std::uint32_t retry_after = 32;
  static constexpr std::uint32_t longest_retry_after = 1 << 14;
  static constexpr std::size_t max_kinds_of_work = 4096;  // beyond that all is learnt anew

 private:
  struct Record {
    double drafted = 2;  // decayed counts; a prior of one accepted in two
    double accepted = 1;
    std::uint32_t untested = retry_after;  // calls since something was compared
    std::uint32_t patience = retry_after;
  };

  std::map<std::string, ForEachDraftKind<Record>> records_;
};

}  // namespace molly::engine
