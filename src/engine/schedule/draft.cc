#include "engine/schedule/draft.h"

#include <algorithm>
#include <cmath>

namespace molly::engine {
namespace {

// After this many newer tokens a compared token counts a third as much.
constexpr double memory_in_tokens = 200;

double expected_tokens(double acceptance, std::uint32_t depth) {
  return (1 - std::pow(acceptance, depth + 1)) / (1 - acceptance);
}

}  // namespace

// The latest earlier occurrence, because what was said last is most like what comes next. Where it is so near that what
// follows it soon reaches the end, the text repeats itself, and so does the guess.
std::vector<Token> NgramDrafter::draft(std::span<const Token> tokens, std::uint32_t depth) {
  for (std::size_t n = longest_; n >= std::max(shortest_, 1U); --n) {
    if (tokens.size() <= n) continue;
    const auto known = tokens.first(tokens.size() - 1);
    const auto found = std::ranges::find_end(known, tokens.last(n));
    if (found.empty()) continue;
    const auto after = tokens.subspan(static_cast<std::size_t>(found.end() - known.begin()));
    std::vector<Token> draft;
    draft.reserve(depth);
    for (std::size_t i = 0; i < depth; ++i) draft.push_back(after[i % after.size()]);
    return draft;
  }
  return {};
}

std::uint32_t AcceptanceGovernor::depth(const std::string& kind, double cost_per_row) {
  const double likely = std::clamp(acceptance(kind), 0.0, 0.999);
  std::uint32_t best = 0;
  double best_speed = 1;
  for (std::uint32_t depth = 1; depth <= max_depth_; ++depth) {
    const double speed = expected_tokens(likely, depth) / (1 + cost_per_row * depth);
    if (speed > best_speed) {
      best = depth;
      best_speed = speed;
    }
  }
  if (records_.size() >= max_kinds && !records_.contains(kind)) records_.clear();
  std::uint32_t& calls_off = records_[kind].calls_off;
  calls_off = best > 0 ? 0 : calls_off + 1;
  if (calls_off < retry_after) return best;
  calls_off = 0;
  return std::min(1U, max_depth_);
}

void AcceptanceGovernor::note(const std::string& kind, std::uint32_t drafted, std::uint32_t accepted) {
  // What follows the first wrong token was not put to the test.
  const double compared = std::min(drafted, accepted + 1);
  Record& record = records_[kind];
  const double kept = std::exp(-compared / memory_in_tokens);
  record.drafted = record.drafted * kept + compared;
  record.accepted = record.accepted * kept + accepted;
}

double AcceptanceGovernor::acceptance(const std::string& kind) const {
  const auto found = records_.find(kind);
  const Record record = found == records_.end() ? Record{} : found->second;
  return record.accepted / record.drafted;
}

}  // namespace molly::engine
