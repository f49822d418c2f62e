#include "engine/schedule/generation.h"

#include <algorithm>
#include <format>

namespace molly::engine {

bool may_use(Drafting drafting, DraftKind source) {
  switch (drafting) {
    case Drafting::off: return false;
    case Drafting::automatic: return true;
    case Drafting::ngram: return source == DraftKind::ngram;
    case Drafting::model: return source == DraftKind::model;
    case Drafting::base: return source == DraftKind::base;
    case Drafting::pushed: return source == DraftKind::pushed;
  }
  return false;
}

std::vector<AdapterWeight> canonical(std::vector<AdapterWeight> adapters) {
  std::ranges::stable_sort(adapters, {}, &AdapterWeight::adapter);
  std::vector<AdapterWeight> merged;
  for (const auto& share : adapters) {
    if (!merged.empty() && merged.back().adapter == share.adapter) {
      merged.back().weight += share.weight;
    } else {
      merged.push_back(share);
    }
  }
  std::erase_if(merged, [](const AdapterWeight& share) { return share.weight == 0; });
  return merged;
}

std::string computation_of(std::span<const AdapterWeight> adapters) {
  std::string text;
  for (const auto& [adapter, weight] : adapters) text += std::format("{}*{};", adapter, weight);
  return text;
}

}  // namespace molly::engine
