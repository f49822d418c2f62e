#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/error.h"
#include "engine/memory/adapter_cache.h"
#include "engine/memory/page_pool.h"
#include "engine/memory/prefix_tree.h"
#include "engine/schedule/draft_source.h"
#include "engine/schedule/executor.h"
#include "engine/schedule/generation.h"
#include "engine/schedule/step_cost.h"

namespace molly::engine {

struct SchedulerOptions {
  std::uint32_t max_running = 32;       // sequences at a time
  std::uint32_t max_waiting = 1024;     // more are refused with overloaded and retry_after
  std::uint32_t prefill_chunk = 128;    // rows of prompts in one step, all sequences together; decode rows come first
  std::uint32_t context_length = 8192;  // tokens of one sequence
  std::uint32_t max_draft_depth = 8;
  // Times the steps; also where a sequence's own times end. Tests bring their own.
  std::function<std::chrono::steady_clock::time_point()> clock = std::chrono::steady_clock::now;
};

struct SchedulerCounters {
  std::uint64_t steps = 0;
  std::uint64_t rows = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t cached_tokens = 0;
  std::uint64_t generated_tokens = 0;
  DraftTally drafts;
  ForEachDraftKind<std::chrono::nanoseconds> draft_time{};  // that sources took
  std::uint64_t preemptions = 0;
  std::uint64_t finished = 0;
  std::uint64_t failed = 0;
};

// Iteration-level scheduling (Orca, OSDI 22, section 3) with chunked prefill (Sarathi-Serve, arXiv 2403.02310): every
// step takes one token of each running sequence, verified drafts, and a bounded piece of the prompts that wait.
//
// Order: priority, then fairness: the member (and within it the adapter) that has had the least service goes first
// (virtual token counters, arXiv 2401.00588), then arrival. A sequence is admitted when the pages for all its tokens so
// far can be had, and one of higher priority takes them from running ones of lower. When pages run out, cached prefixes
// and idle adapters go first, cheapest first, and then the running sequence that comes last in the order is preempted:
// its full pages go to the prefix tree and it is computed again later.
//
// Prompts that are computed at the same time share each step's rows evenly, so that requests that came together have
// their first tokens together. One whose beginning a running prompt is about to compute waits for that, and takes it
// over.
//
// Used by the engine's thread only. Nothing here waits: a sequence whose adapter is being loaded is passed over. Sinks
// must not call back into the scheduler.
class Scheduler {
 public:
  using Clock = std::chrono::steady_clock;

  Scheduler(Executor& executor, PagePool& pool, PrefixTree& prefixes, AdapterCache& adapters, SchedulerOptions options);
  ~Scheduler();  // ends what is left (cancelled)
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // The source of DraftKind::model; without one requests that name it are not drafted for.
  void set_model_drafter(std::unique_ptr<DraftSource> drafter);
  // Guesses from outside, for the sequence that has this channel. See PushedDrafts::push().
  void push_draft(std::string_view channel, std::uint32_t position, std::span<const Token> tokens);

  // invalid_request, context_length_exceeded (also where the page pool is too small for the prompt), overloaded with
  // retry_after, conflict when its draft channel is taken. After success the sink hears the rest, on_end or on_error
  // last: not_found when there is no such adapter, what AdapterCache::acquire() says of others, timeout at the
  // deadline, overloaded or context_length_exceeded when the sequence does not fit the pool even alone, the executor's
  // errors.
  Result<GenerationId> submit(GenerationRequest request, Clock::time_point now);
  // The sink hears on_end(cancelled), before this returns. Unknown ids are ignored: it may just have ended.
  void cancel(GenerationId id);

  // Plans and runs one forward pass; false when there was nothing to run (all wait for adapters, or there are none).
  // An executor's error ends the sequences of that step with it; the others go on.
  bool step(Clock::time_point now);

  // The earliest deadline of all; max() when there is none. step() must be called then for the timeout to be told.
  Clock::time_point next_deadline() const;

  std::uint32_t running() const;
  std::uint32_t waiting() const;
  std::uint64_t waiting_tokens() const;  // of the sequences that wait
  SchedulerCounters counters() const;
  StepCost step_cost() const;  // as measured

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace molly::engine
