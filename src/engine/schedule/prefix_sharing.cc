#include <algorithm>

#include "engine/schedule/scheduler_state.h"

namespace molly::engine {
namespace {

std::uint32_t common_tokens(std::span<const Token> left, std::span<const Token> right) {
  return static_cast<std::uint32_t>(std::ranges::mismatch(left, right).in1 - left.begin());
}

std::span<const Token> reusable_tokens(const Sequence& sequence) {
  return std::span(sequence.tokens).first(sequence.reusable());
}

std::span<const Token> computed_tokens(const Sequence& sequence) {
  return std::span(sequence.tokens).first(sequence.computed);
}

}  // namespace

// Whether one that runs is about to compute a page or more that this one could take over. It is told to pause there, so
// that it does not run away with its own tokens meanwhile.
bool Scheduler::State::waits_for_prefix(const Sequence& sequence) {
  if (sequence.key.domain.empty()) return false;
  const auto wanted = reusable_tokens(sequence);
  Sequence* leader = nullptr;
  std::uint32_t known = 0;
  std::uint32_t known_soon = 0;
  for (const auto& other : running) {
    if (other->key != sequence.key) continue;
    known = std::max(known, common_tokens(wanted, computed_tokens(*other)));
    const auto soon = common_tokens(wanted, other->tokens);
    if (other->request.priority < sequence.request.priority || soon <= known_soon) continue;
    known_soon = soon;
    leader = other.get();
  }
  if (leader == nullptr || known_soon < known + executor.page_tokens()) return false;
  leader->pause_at = std::min(leader->pause_at, known_soon);
  return true;
}

// Full pages always come by way of the tree, also those of one that still runs: so a node of the tree is in use as a
// whole or not at all, and what nobody uses can be evicted.
KnownPrefix Scheduler::State::known_prefix(const Sequence& sequence) {
  if (sequence.key.domain.empty() || sequence.reusable() == 0) return {};
  const auto [source, common] = longest_running_prefix(sequence);
  if (source != nullptr) remember(*source);
  auto cached = prefixes.match(sequence.key, std::span(sequence.tokens).first(sequence.reusable() + 1), now);
  KnownPrefix known{.pages = std::move(cached.pages), .partial = {}, .tokens = cached.tokens};
  if (common > known.tokens) {
    known.partial = source->pages[known.pages.size()];
    known.tokens = common;
  }
  return known;
}

std::pair<const Sequence*, std::uint32_t> Scheduler::State::longest_running_prefix(const Sequence& sequence) const {
  std::pair<const Sequence*, std::uint32_t> longest{nullptr, 0};
  for (const auto& other : running) {
    if (other->key != sequence.key) continue;
    const auto common = common_tokens(reusable_tokens(sequence), computed_tokens(*other));
    if (common > longest.second) longest = {other.get(), common};
  }
  return longest;
}

// Exchanges pages that a running sequence computed although the tree had them, or had them before it did, for the
// tree's. Else what hangs below them in the tree would keep both from being evicted.
bool Scheduler::State::share_duplicates() {
  const auto free_before = pool.free();
  for (const auto& sequence : running) {
    auto cached = prefixes.match(sequence->key, std::span(sequence->tokens).first(sequence->computed + 1), now);
    std::ranges::swap_ranges(cached.pages, sequence->pages);
    pool.release(cached.pages);
  }
  return pool.free() > free_before;
}

void Scheduler::State::remember(const Sequence& sequence) {
  prefixes.insert(sequence.key, computed_tokens(sequence), sequence.pages, now);
}

}  // namespace molly::engine
