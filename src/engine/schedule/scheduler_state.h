#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/schedule/acceptance_governor.h"
#include "engine/schedule/model_drafter.h"
#include "engine/schedule/ngram_drafter.h"
#include "engine/schedule/pushed_drafts.h"
#include "engine/schedule/scheduler.h"
#include "engine/schedule/sequence.h"
#include "engine/schedule/step_cost.h"

namespace molly::engine {

// A sequence's part in one forward pass.
struct StepPart {
  Sequence* sequence = nullptr;
  std::vector<Token> tokens;  // with drafts at the end
  std::uint32_t drafts = 0;
  DraftKind draft_kind{};
  std::uint32_t first_position = 0;
  Wanted wanted = Wanted::nothing;
  std::uint32_t first_output = 0;

  std::uint32_t rows() const { return static_cast<std::uint32_t>(tokens.size()); }
  std::uint32_t outputs() const { return wanted == Wanted::all ? rows() : wanted == Wanted::last ? 1 : 0; }
};

// How guesses for one sequence may be had.
struct DraftOption {
  DraftKind source{};
  DraftPlan plan;
};

// A sequence for which guesses are wanted: its sources, the one to ask next last.
struct DraftCandidate {
  StepPart* part = nullptr;
  std::vector<DraftOption> options;
};

// Tokens at the beginning of a sequence whose keys and values are known.
struct KnownPrefix {
  std::vector<PageId> pages;      // full ones, each with a reference for the caller
  std::optional<PageId> partial;  // a running sequence's, to be copied
  std::uint32_t tokens = 0;
};

// Parts are in files by the stage of a step: admission.cc, prefix_sharing.cc, step_plan.cc, drafting.cc, verify.cc;
// pages.cc serves them. Every sequence is on exactly one of the two lists, but while it is being ended.
struct Scheduler::State {
  using Clock = Scheduler::Clock;
  using SequenceList = std::vector<std::unique_ptr<Sequence>>;

  State(Executor& the_executor, PagePool& the_pool, PrefixTree& the_prefixes, AdapterCache& adapters,
        SchedulerOptions the_options);

  Executor& executor;
  PagePool& pool;
  PrefixTree& prefixes;
  AdapterCache& adapter_cache;
  SchedulerOptions options;
  AcceptanceGovernor governor{};
  std::shared_ptr<StepCost> cost = std::make_shared<StepCost>();
  NgramDrafter ngram_drafter{};
  std::unique_ptr<DraftSource> model_drafter{};
  ModelDrafter base_drafter;
  PushedDrafts pushed_drafts{};
  Fairness fairness{};
  SchedulerCounters counters{};
  SequenceList waiting{};
  SequenceList running{};
  GenerationId next_id = 1;
  std::uint64_t changes = 1;  // counts what may give pages to those who lack them
  Clock::time_point now{};    // of the last call that told it
  std::optional<Clock::time_point> last_end{};
  double seconds_between_ends = 1;

  // scheduler.cc
  Result<void> check(const GenerationRequest& request) const;
  Error too_many_wait() const;
  Sequence* find(GenerationId id) const;
  bool step();
  void fail_overdue();
  Result<void> run(const std::vector<StepPart>& plan);
  void fail_all(const std::vector<StepPart>& plan, const Error& error);
  void finish(Sequence& sequence, FinishReason reason);
  void fail(Sequence& sequence, Error error);
  std::unique_ptr<Sequence> remove(Sequence& sequence);
  void note_end();
  GenerationTimings timings_at_end(const Sequence& sequence) const;

  // admission.cc
  void admit();
  Admission try_admit(Sequence& sequence);
  Admission admit_at_cost_of_lower(Sequence& sequence);
  bool has_place_for(const Sequence& sequence) const;
  Admission hold_adapters(Sequence& sequence);
  Admission lacking(Sequence& sequence, Admission what) const;
  bool place(Sequence& sequence);
  void start(Sequence& sequence);
  Error does_not_fit(const Sequence& sequence) const;

  // prefix_sharing.cc
  bool waits_for_prefix(const Sequence& sequence);
  KnownPrefix known_prefix(const Sequence& sequence);
  std::pair<const Sequence*, std::uint32_t> longest_running_prefix(const Sequence& sequence) const;
  bool share_duplicates();
  void remember(const Sequence& sequence);

  // pages.cc
  std::uint32_t pages_for(std::uint32_t tokens) const;
  std::uint32_t growth_soon(const Sequence& sequence) const;
  bool make_room(std::uint32_t pages);
  std::uint32_t evict_cheapest(std::uint32_t most);
  bool evict_prefixes(std::uint32_t pages);
  bool grow(Sequence& sequence, std::uint32_t tokens);
  void add_pages(Sequence& sequence, std::uint32_t count);
  Sequence* last_running() const;
  bool preempt_below(std::int32_t priority);
  void preempt(Sequence& sequence);
  void release_memory(Sequence& sequence);
  void release_adapters(Sequence& sequence);

  // step_plan.cc
  std::vector<StepPart> plan_step();
  void allot_rows();
  void allot_to_prompts(std::uint32_t budget);
  StepPart part_of(Sequence& sequence) const;

  // drafting.cc
  void add_drafts(std::vector<StepPart>& plan);
  std::vector<DraftCandidate> draft_candidates(std::vector<StepPart>& plan);
  std::vector<DraftOption> draft_options(const Sequence& sequence, std::uint32_t step_rows, std::uint32_t sequences);
  DraftCosts draft_costs(DraftKind source, std::uint32_t step_rows, std::uint32_t sequences);
  DraftSource* draft_source(DraftKind kind);
  bool may_draft(const Sequence& sequence, DraftKind source);
  DraftWish draft_wish(const Sequence& sequence) const;
  bool pays_its_beginning(const Sequence& sequence, const DraftOption& option, double step_share);
  void ask_next_source(std::vector<DraftCandidate>& candidates, std::uint32_t& rows_left);
  std::uint32_t add_draft(StepPart& part, DraftKind source, std::vector<Token> draft);
  std::size_t room_for_drafts(Sequence& sequence, std::size_t drafts);
  void forget_drafts(const Sequence& sequence);

  // verify.cc
  void read_outputs(const std::vector<StepPart>& plan);
  void read_prompt_outputs(const StepPart& part);
  void complete_prompt(Sequence& sequence);
  void choose_tokens(const StepPart& part);
  std::optional<FinishReason> append(Sequence& sequence, const Choice& choice);
  void note_drafts(const StepPart& part, std::uint32_t accepted, std::uint32_t compared);
};

}  // namespace molly::engine
