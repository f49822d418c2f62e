#include "engine/schedule/ngram_drafter.h"

#include <algorithm>

namespace molly::engine {

std::vector<std::vector<Token>> NgramDrafter::draft(std::span<const DraftWish> wishes) {
  std::vector<std::vector<Token>> drafts;
  drafts.reserve(wishes.size());
  for (const DraftWish& wish : wishes) drafts.push_back(continue_as_before(wish.tokens, wish.depth));
  return drafts;
}

// The latest earlier occurrence, because what was said last is most like what comes next. Where it is so near that what
// follows it soon reaches the end, the text repeats itself, and so does the guess.
std::vector<Token> NgramDrafter::continue_as_before(std::span<const Token> tokens, std::uint32_t depth) const {
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

}  // namespace molly::engine
