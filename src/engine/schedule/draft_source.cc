#include "engine/schedule/draft_source.h"

namespace molly::engine {

std::string_view to_string(DraftKind kind) {
  switch (kind) {
    case DraftKind::ngram: return "ngram";
    case DraftKind::model: return "model";
    case DraftKind::base: return "base";
    case DraftKind::pushed: return "pushed";
  }
  return "";
}

DraftCounts total(const DraftTally& tally) {
  DraftCounts sum;
  for (const DraftCounts& counts : tally) {
    sum.drafted += counts.drafted;
    sum.accepted += counts.accepted;
  }
  return sum;
}

}  // namespace molly::engine
