#include "engine/schedule/acceptance_governor.h"

#include <algorithm>
#include <cmath>

namespace molly::engine {
namespace {

// After this many newer tokens a compared token counts a third as much.
constexpr double memory_in_tokens = 200;
constexpr double highest_acceptance = 0.999;
constexpr double hoped_acceptance = 0.95;  // of a source that is tried again
constexpr double worth_of_the_old = 0.25;  // what was learnt before a trial counts that much

double expected_tokens(double acceptance, std::uint32_t depth) {
  return (1 - std::pow(acceptance, depth + 1)) / (1 - acceptance);
}

DraftPlan best_at(double acceptance, const DraftCosts& costs) {
  DraftPlan best;
  for (std::uint32_t depth = 1; depth <= costs.size(); ++depth) {
    const double speed =
        expected_tokens(std::clamp(acceptance, 0.0, highest_acceptance), depth) / (1 + costs[depth - 1]);
    if (speed > best.speed) best = {.depth = depth, .speed = speed};
  }
  return best;
}

}  // namespace

DraftPlan AcceptanceGovernor::plan(const std::string& work, DraftKind source, const DraftCosts& costs) {
  const DraftPlan best = best_at(acceptance(work, source), costs);
  if (records_.size() >= max_kinds_of_work && !records_.contains(work)) records_.clear();
  Record& record = records_[work][source];
  if (best.depth > 0) record.patience = retry_after;
  if (++record.untested < record.patience) return best;
  const DraftPlan hoped = best_at(hoped_acceptance, costs);
  if (hoped.depth == 0) return best;
  return {.depth = std::min(hoped.depth, trial_depth), .speed = hoped.speed, .is_trial = true};
}

void AcceptanceGovernor::note(const std::string& work, DraftKind source, std::uint32_t drafted,
                              std::uint32_t accepted) {
  // What follows the first wrong token was not put to the test.
  const double compared = std::min(drafted, accepted + 1);
  Record& record = records_[work][source];
  if (record.untested >= record.patience) {
    record.drafted *= worth_of_the_old;
    record.accepted *= worth_of_the_old;
    record.patience = accepted > 0 ? retry_after : std::min(2 * record.patience, longest_retry_after);
  }
  const double kept = std::exp(-compared / memory_in_tokens);
  record.drafted = record.drafted * kept + compared;
  record.accepted = record.accepted * kept + accepted;
  record.untested = 0;
}

double AcceptanceGovernor::acceptance(const std::string& work, DraftKind source) const {
  const auto found = records_.find(work);
  const Record record = found == records_.end() ? Record{} : found->second[source];
  return record.accepted / record.drafted;
}

}  // namespace molly::engine
