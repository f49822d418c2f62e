#include <algorithm>
#include <cassert>

#include "engine/schedule/scheduler_state.h"

namespace molly::engine {

std::uint32_t Scheduler::State::pages_for(std::uint32_t tokens) const {
  const auto page_tokens = executor.page_tokens();
  return tokens / page_tokens + (tokens % page_tokens == 0 ? 0 : 1);
}

// Pages that it may still need for the next page's worth of tokens.
std::uint32_t Scheduler::State::growth_soon(const Sequence& sequence) const {
  const std::uint64_t longest = std::min<std::uint64_t>(
      std::uint64_t{sequence.prompt_tokens} + sequence.request.max_tokens, options.context_length);
  const auto soon = std::min<std::uint64_t>(longest, std::uint64_t{sequence.length()} + executor.page_tokens());
  const auto held = std::max(pages_for(sequence.length()), static_cast<std::uint32_t>(sequence.pages.size()));
  const auto needed = pages_for(static_cast<std::uint32_t>(soon));
  return needed > held ? needed - held : 0;
}

bool Scheduler::State::make_room(std::uint32_t pages) {
  while (pool.free() < pages) {
    if (base_drafter.give_back() > 0) continue;
    if (evict_cheapest(pages - pool.free()) == 0 && !share_duplicates()) return false;
  }
  return true;
}

std::uint32_t Scheduler::State::evict_cheapest(std::uint32_t most) {
  const auto prefix = prefixes.cheapest(now);
  const auto adapter = adapter_cache.cheapest(now);
  if (!prefix && !adapter) return 0;
  if (!adapter || (prefix && prefix->score <= adapter->score)) return prefixes.evict_cheapest(now, most);
  return adapter_cache.evict_cheapest(now);
}

bool Scheduler::State::evict_prefixes(std::uint32_t pages) {
  std::uint32_t freed = 0;
  while (freed < pages) {
    auto now_freed = base_drafter.give_back();
    if (now_freed == 0) now_freed = prefixes.evict_cheapest(now, pages - freed);
    if (now_freed == 0) return false;
    freed += now_freed;
  }
  return true;
}

// Room for the keys and values of that many tokens. False when there is none even at the cost of those that come later
// in the order: then the sequence does not run any more.
bool Scheduler::State::grow(Sequence& sequence, std::uint32_t tokens) {
  const auto needed = pages_for(tokens);
  const auto held = static_cast<std::uint32_t>(sequence.pages.size());
  if (needed <= held) return true;
  while (!make_room(needed - held)) {
    if (running.size() == 1) {
      fail(sequence, does_not_fit(sequence));
      return false;
    }
    Sequence* last = last_running();
    preempt(*last);
    if (last == &sequence) return false;
  }
  add_pages(sequence, needed - held);
  return true;
}

void Scheduler::State::add_pages(Sequence& sequence, std::uint32_t count) {
  const auto pages = pool.allocate(count, PageUse::kv);
  assert(pages);
  sequence.pages.insert(sequence.pages.end(), pages->begin(), pages->end());
}

Sequence* Scheduler::State::last_running() const {
  const auto before = [](const auto& left, const auto& right) { return goes_before(*left, *right); };
  return running.empty() ? nullptr : std::ranges::max_element(running, before)->get();
}

bool Scheduler::State::preempt_below(std::int32_t priority) {
  Sequence* last = last_running();
  if (last == nullptr || last->request.priority >= priority) return false;
  preempt(*last);
  return true;
}

void Scheduler::State::preempt(Sequence& sequence) {
  remember(sequence);
  release_memory(sequence);
  ++sequence.timings.preemptions;
  ++counters.preemptions;
  const auto found = std::ranges::find(running, &sequence, &std::unique_ptr<Sequence>::get);
  waiting.push_back(std::move(*found));
  running.erase(found);
}

void Scheduler::State::release_memory(Sequence& sequence) {
  pool.release(sequence.pages);
  sequence.pages.clear();
  sequence.computed = 0;
  sequence.rows = 0;
  release_adapters(sequence);
  ++changes;
}

void Scheduler::State::release_adapters(Sequence& sequence) {
  for (std::size_t i = 0; i < sequence.adapters.size(); ++i) {
    adapter_cache.release(sequence.request.adapters[i].adapter);
  }
  sequence.adapters.clear();
}

}  // namespace molly::engine
