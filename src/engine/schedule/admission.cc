#include <algorithm>
#include <format>

#include "engine/schedule/scheduler_state.h"

namespace molly::engine {
namespace {

// Copying an adapter into the pool takes milliseconds, and those who run wait meanwhile.
constexpr std::uint64_t promotions_per_step = 4;

bool first_of_two(const Sequence* left, const Sequence* right) { return goes_before(*left, *right); }

}  // namespace

// In order, as long as there are places and pages. One that waits for an adapter or a prefix is passed over; so is one
// for whose adapters there are no pages, but not for ever. One that lacks pages for itself is not: smaller ones behind
// it would take what it waits for.
void Scheduler::State::admit() {
  for (const auto& sequence : running) sequence->pause_at = Sequence::nowhere;
  std::vector<Sequence*> candidates;
  for (const auto& sequence : waiting) candidates.push_back(sequence.get());
  std::ranges::sort(candidates, first_of_two);
  const bool others_wait_meanwhile = !running.empty();
  const auto promotions_before = adapter_cache.counters().promotions;
  std::vector<Sequence*> overtaken;
  std::uint32_t passed_over = 0;
  for (auto next = candidates.begin(); next != candidates.end() && has_place_for(**next); ++next) {
    switch (admit_at_cost_of_lower(**next)) {
      case Admission::admitted:
        for (Sequence* sequence : overtaken) ++sequence->overtaken;
        std::ranges::sort(next + 1, candidates.end(), first_of_two);
        break;
      case Admission::lacks_pages: return;
      case Admission::lacks_adapter_pages:
        if ((*next)->overtaken >= options.max_running) return;
        overtaken.push_back(*next);
        [[fallthrough]];
      case Admission::waits_for_adapter:
      case Admission::waits_for_prefix:
        if (++passed_over >= options.max_running) return;
        break;
      case Admission::failed: break;
    }
    const auto promotions = adapter_cache.counters().promotions - promotions_before;
    if (others_wait_meanwhile && promotions >= promotions_per_step) return;
  }
}

bool Scheduler::State::has_place_for(const Sequence& sequence) const {
  return running.size() < options.max_running || last_running()->request.priority < sequence.request.priority;
}

Admission Scheduler::State::admit_at_cost_of_lower(Sequence& sequence) {
  for (;;) {
    const Admission admission = try_admit(sequence);
    if (admission != Admission::lacks_pages && admission != Admission::lacks_adapter_pages) return admission;
    if (preempt_below(sequence.request.priority)) continue;
    if (!running.empty()) return admission;
    fail(sequence, does_not_fit(sequence));
    return Admission::failed;
  }
}

Admission Scheduler::State::try_admit(Sequence& sequence) {
  if (waits_for_prefix(sequence)) return Admission::waits_for_prefix;
  if (sequence.lacked_pages_at == changes) return sequence.lacked;
  const Admission held = hold_adapters(sequence);
  if (held != Admission::admitted) return held;
  if (running.size() >= options.max_running) preempt_below(sequence.request.priority);
  if (!place(sequence)) {
    release_adapters(sequence);
    return lacking(sequence, Admission::lacks_pages);
  }
  start(sequence);
  return Admission::admitted;
}

Admission Scheduler::State::hold_adapters(Sequence& sequence) {
  bool short_of_pages = false;
  const auto evict = [&](std::uint32_t pages) {
    const bool evicted = evict_prefixes(pages);
    short_of_pages = !evicted;
    return evicted;
  };
  for (const auto& [adapter, weight] : sequence.request.adapters) {
    auto held = adapter_cache.acquire(adapter, now, evict);
    if (!held) {
      fail(sequence, std::move(held.error()));
      return Admission::failed;
    }
    if (!*held) {
      release_adapters(sequence);
      return short_of_pages ? lacking(sequence, Admission::lacks_adapter_pages) : Admission::waits_for_adapter;
    }
    sequence.adapters.push_back({.adapter = **held, .weight = weight});
  }
  return Admission::admitted;
}

Admission Scheduler::State::lacking(Sequence& sequence, Admission what) const {
  sequence.lacked_pages_at = changes;
  sequence.lacked = what;
  return what;
}

// Pages for all its tokens, and beside them for what those that run will need soon: what is admitted should not be
// preempted at once.
bool Scheduler::State::place(Sequence& sequence) {
  auto known = known_prefix(sequence);
  const auto fresh = pages_for(sequence.length()) - static_cast<std::uint32_t>(known.pages.size());
  std::uint32_t reserve = 0;
  for (const auto& other : running) reserve += growth_soon(*other);
  if (!running.empty()) reserve += growth_soon(sequence);
  if (!make_room(fresh + reserve)) {
    pool.release(known.pages);
    return false;
  }
  sequence.pages = std::move(known.pages);
  add_pages(sequence, fresh);
  if (known.partial) executor.copy_page(*known.partial, sequence.pages[known.tokens / executor.page_tokens()]);
  sequence.computed = known.tokens;
  return true;
}

void Scheduler::State::start(Sequence& sequence) {
  if (sequence.timings.preemptions == 0) {
    sequence.timings.cached_tokens = sequence.computed;
    counters.prompt_tokens += sequence.prompt_tokens;
    counters.cached_tokens += sequence.computed;
    Fairness::charge_prompt(sequence, sequence.prompt_tokens - sequence.computed);
  }
  const auto found = std::ranges::find(waiting, &sequence, &std::unique_ptr<Sequence>::get);
  running.push_back(std::move(*found));
  waiting.erase(found);
}

Error Scheduler::State::does_not_fit(const Sequence& sequence) const {
  const auto capacity = std::uint64_t{pool.size()} * executor.page_tokens();
  if (sequence.length() >= capacity) {
    return {
        .code = ErrorCode::context_length_exceeded,
        .message = std::format("the engine's memory for keys and values holds {} tokens, and the request has reached "
                               "its end",
                               capacity),
        .field = "max_tokens"};
  }
  return {.code = ErrorCode::overloaded,
          .message = std::format("the request's {} tokens and its adapters do not fit the engine's memory together",
                                 sequence.length())};
}

}  // namespace molly::engine
