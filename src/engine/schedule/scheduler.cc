#include "engine/schedule/scheduler.h"

#include <algorithm>
#include <cassert>
#include <format>
#include <utility>

#include "engine/schedule/scheduler_state.h"

namespace molly::engine {
namespace {

using namespace std::chrono_literals;

constexpr double kept_of_mean_interval = 0.9;

constexpr std::uint32_t part_of_pool_for_guesses = 4;

std::unique_ptr<Sequence> make_sequence(GenerationRequest request, GenerationId id, Sequence::Time now) {
  auto sequence = std::make_unique<Sequence>();
  sequence->id = id;
  sequence->submitted = now;
  sequence->tokens = std::move(request.prompt);
  sequence->prompt_tokens = sequence->length();
  sequence->prompt_outputs = PromptOutputs(request.prompt_logprobs, request.pooling);
  request.adapters = canonical(std::move(request.adapters));
  sequence->key = {.domain = request.domain, .computation = computation_of(request.adapters)};
  sequence->work = std::format("{} {}", sequence->key.computation, request.task_class);
  sequence->request = std::move(request);
  return sequence;
}

SchedulerOptions within_limits(SchedulerOptions options, const Executor& executor) {
  options.max_running = std::clamp(options.max_running, 1U, executor.max_rows());
  options.prefill_chunk = std::clamp(options.prefill_chunk, 1U, executor.max_rows());
  return options;
}

}  // namespace

Result<void> Scheduler::State::check(const GenerationRequest& request) const {
  if (request.prompt.empty()) return failure(ErrorCode::invalid_request, "the prompt is empty", "prompt");
  const auto is_unknown = [&](Token token) {
    return token < 0 || std::cmp_greater_equal(token, executor.vocabulary());
  };
  if (std::ranges::any_of(request.prompt, is_unknown)) {
    return failure(ErrorCode::invalid_request, "the prompt holds a token that the vocabulary lacks", "prompt");
  }
  if (request.max_tokens > 0 && !request.chooser) {
    return failure(ErrorCode::invalid_request, "tokens are asked for, but nothing that chooses them", "max_tokens");
  }
  const std::size_t needed = request.prompt.size() + (request.max_tokens > 0 ? 1 : 0);
  if (needed > options.context_length) {
    return failure(ErrorCode::context_length_exceeded,
                   std::format("the prompt has {} tokens, and the context holds {} with what is generated",
                               request.prompt.size(), options.context_length),
                   "prompt");
  }
  const auto pages = pages_for(static_cast<std::uint32_t>(request.prompt.size()));
  if (pages > pool.size()) {
    return failure(ErrorCode::context_length_exceeded,
                   std::format("the prompt has {} tokens, and the engine's memory for keys and values holds {}",
                               request.prompt.size(), pool.size() * executor.page_tokens()),
                   "prompt");
  }
  return {};
}

Scheduler::State::State(Executor& the_executor, PagePool& the_pool, PrefixTree& the_prefixes, AdapterCache& adapters,
                        SchedulerOptions the_options)
    : executor(the_executor),
      pool(the_pool),
      prefixes(the_prefixes),
      adapter_cache(adapters),
      options(within_limits(std::move(the_options), the_executor)),
      base_drafter(executor, pool, cost,
                   {.max_pages = pool.size() / part_of_pool_for_guesses,
                    .max_rows = options.prefill_chunk,
                    .clock = options.clock}) {}

// When half of those who wait will have been served.
Error Scheduler::State::too_many_wait() const {
  const std::chrono::duration<double> wait(seconds_between_ends * static_cast<double>(waiting.size()) / 2);
  const auto retry_after = std::chrono::ceil<std::chrono::milliseconds>(wait);
  return {.code = ErrorCode::overloaded,
          .message = std::format("{} requests wait already; try again later", waiting.size()),
          .retry_after = std::clamp<std::chrono::milliseconds>(retry_after, 50ms, 60s)};
}

Sequence* Scheduler::State::find(GenerationId id) const {
  for (const auto* list : {&running, &waiting}) {
    const auto found = std::ranges::find(*list, id, [](const auto& sequence) { return sequence->id; });
    if (found != list->end()) return found->get();
  }
  return nullptr;
}

bool Scheduler::State::step() {
  if (adapter_cache.poll(now)) ++changes;
  fail_overdue();
  std::vector<StepPart> plan;
  for (auto before = changes; plan.empty(); before = changes) {
    admit();
    plan = plan_step();
    if (plan.empty() && (waiting.empty() || changes == before)) return false;
  }
  if (auto ran = run(plan); !ran) {
    fail_all(plan, ran.error());
  } else {
    read_outputs(plan);
  }
  return true;
}

void Scheduler::State::fail_overdue() {
  std::vector<Sequence*> overdue;
  for (const auto* list : {&running, &waiting}) {
    for (const auto& sequence : *list) {
      if (sequence->request.deadline <= now) overdue.push_back(sequence.get());
    }
  }
  for (Sequence* sequence : overdue) {
    fail(*sequence, {.code = ErrorCode::timeout,
                     .message = std::format("the deadline passed when {} of at most {} tokens were generated",
                                            sequence->generated(), sequence->request.max_tokens)});
  }
}

Result<void> Scheduler::State::run(const std::vector<StepPart>& plan) {
  std::vector<StepSequence> sequences;
  std::uint32_t rows = 0;
  for (const StepPart& part : plan) {
    const auto pages = std::span(part.sequence->pages).first(pages_for(part.first_position + part.rows()));
    sequences.push_back({.tokens = part.tokens,
                         .first_position = part.first_position,
                         .pages = pages,
                         .adapters = part.sequence->adapters,
                         .wanted = part.wanted});
    rows += part.rows();
  }
  const auto start = options.clock();
  for (const StepPart& part : plan) {
    if (!part.sequence->started) part.sequence->started = start;
  }
  auto ran = executor.run(sequences);
  cost->note(rows, options.clock() - start);
  if (cost->per_row() > 0) prefixes.set_prefill_milliseconds(cost->per_row());
  ++counters.steps;
  counters.rows += rows;
  return ran;
}

void Scheduler::State::fail_all(const std::vector<StepPart>& plan, const Error& error) {
  for (const StepPart& part : plan) fail(*part.sequence, error);
}

void Scheduler::State::finish(Sequence& sequence, FinishReason reason) {
  remember(sequence);
  const auto ended = remove(sequence);
  ++counters.finished;
  ended->request.sink->on_end(reason, timings_at_end(*ended));
}

void Scheduler::State::fail(Sequence& sequence, Error error) {
  const auto ended = remove(sequence);
  ++counters.failed;
  ended->request.sink->on_error(std::move(error), timings_at_end(*ended));
}

std::unique_ptr<Sequence> Scheduler::State::remove(Sequence& sequence) {
  release_memory(sequence);
  forget_drafts(sequence);
  fairness.leave(sequence);
  note_end();
  for (auto* list : {&running, &waiting}) {
    const auto found = std::ranges::find(*list, &sequence, &std::unique_ptr<Sequence>::get);
    if (found == list->end()) continue;
    auto removed = std::move(*found);
    list->erase(found);
    return removed;
  }
  assert(false && "a sequence is on one of the lists");
  return nullptr;
}

void Scheduler::State::note_end() {
  if (last_end) {
    const double seconds = std::chrono::duration<double>(now - *last_end).count();
    seconds_between_ends = seconds_between_ends * kept_of_mean_interval + seconds * (1 - kept_of_mean_interval);
  }
  last_end = now;
}

GenerationTimings Scheduler::State::timings_at_end(const Sequence& sequence) const {
  const auto end = std::max(options.clock(), sequence.submitted);
  const auto started = std::clamp(sequence.started.value_or(end), sequence.submitted, end);
  const auto first_token = std::clamp(sequence.first_token.value_or(end), started, end);
  GenerationTimings timings = sequence.timings;
  timings.queued = started - sequence.submitted;
  timings.prefill = first_token - started;
  timings.decode = end - first_token;
  return timings;
}

Scheduler::Scheduler(Executor& executor, PagePool& pool, PrefixTree& prefixes, AdapterCache& adapters,
                     SchedulerOptions options)
    : state_(new State(executor, pool, prefixes, adapters, std::move(options))) {}

Scheduler::~Scheduler() {
  for (auto* list : {&state_->running, &state_->waiting}) {
    while (!list->empty()) state_->finish(*list->back(), FinishReason::cancelled);
  }
}

void Scheduler::set_model_drafter(std::unique_ptr<DraftSource> drafter) { state_->model_drafter = std::move(drafter); }

void Scheduler::push_draft(std::string_view channel, std::uint32_t position, std::span<const Token> tokens) {
  state_->pushed_drafts.push(channel, position, tokens);
}

Result<GenerationId> Scheduler::submit(GenerationRequest request, Clock::time_point now) {
  assert(request.sink);
  state_->now = now;
  if (auto good = state_->check(request); !good) return std::unexpected(std::move(good.error()));
  if (state_->waiting.size() >= state_->options.max_waiting) return std::unexpected(state_->too_many_wait());
  const GenerationId id = state_->next_id++;
  if (!request.draft_channel.empty() && !state_->pushed_drafts.open(request.draft_channel, id)) {
    return failure(ErrorCode::conflict, "another request has this draft channel", "draft_channel");
  }
  for (const auto& share : request.adapters) state_->adapter_cache.prefetch(share.adapter);
  auto& sequence = state_->waiting.emplace_back(make_sequence(std::move(request), id, now));
  state_->fairness.enter(*sequence);
  return id;
}

void Scheduler::cancel(GenerationId id) {
  if (Sequence* sequence = state_->find(id)) state_->finish(*sequence, FinishReason::cancelled);
}

bool Scheduler::step(Clock::time_point now) {
  state_->now = now;
  return state_->step();
}

Scheduler::Clock::time_point Scheduler::next_deadline() const {
  auto earliest = Clock::time_point::max();
  for (const auto* list : {&state_->running, &state_->waiting}) {
    for (const auto& sequence : *list) earliest = std::min(earliest, sequence->request.deadline);
  }
  return earliest;
}

std::uint32_t Scheduler::running() const { return static_cast<std::uint32_t>(state_->running.size()); }
std::uint32_t Scheduler::waiting() const { return static_cast<std::uint32_t>(state_->waiting.size()); }
std::uint64_t Scheduler::waiting_tokens() const {
  std::uint64_t tokens = 0;
  for (const auto& sequence : state_->waiting) tokens += sequence->length();
  return tokens;
}
SchedulerCounters Scheduler::counters() const { return state_->counters; }
StepCost Scheduler::step_cost() const { return *state_->cost; }

}  // namespace molly::engine
