#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "engine/memory/page_pool.h"
#include "engine/schedule/draft_source.h"
#include "engine/schedule/executor.h"
#include "engine/schedule/generation.h"
#include "engine/schedule/step_cost.h"

namespace molly::engine {

struct ModelDrafterOptions {
  std::uint32_t max_pages = 0;   // of the pool
  std::uint32_t max_rows = 128;  // of one pass: so much of a long prompt is computed at a time
  std::function<std::chrono::steady_clock::time_point()> clock = std::chrono::steady_clock::now;
};

// Generates guesses with a model, for all sequences that draft in a step together. It keeps keys and values of its own
// for each sequence, also while that is preempted, as long as there is room; what a rejected guess left there is
// written over.
//
// A guess is made by a copy of the request's chooser, with the same samplers, grammar and random numbers: where both
// models agree on the distribution, they agree on the token at any temperature (drafter-invariant coupling, Daliri et
// al., arXiv 2408.07978). Without one it is the most likely token.
class ModelDrafter : public DraftSource {
 public:
  // `executor` and `pool` must outlive it. `cost` is also told of its passes. Takes free pages only.
  ModelDrafter(Executor& executor, PagePool& pool, std::shared_ptr<StepCost> cost, ModelDrafterOptions options);
  ~ModelDrafter() override;
  ModelDrafter(const ModelDrafter&) = delete;
  ModelDrafter& operator=(const ModelDrafter&) = delete;

  std::vector<std::vector<Token>> draft(std::span<const DraftWish> wishes) override;
  void forget(GenerationId sequence) override;
  double milliseconds_per_token(std::uint32_t sequences) const override;
  double milliseconds_to_catch_up(const DraftWish& wish) const override;

  // Frees what it keeps for the sequence that drafted longest ago; how many pages became free.
  std::uint32_t give_back();
  std::uint32_t pages() const { return pages_; }
  // Runs a few passes, so that the cost is known before the first request.
  Result<void> measure();

 private:
  struct Memory {
    std::vector<Token> tokens;  // whose keys and values are in `pages`
    std::vector<PageId> pages;
    std::uint64_t last_use = 0;  // a number of calls
  };
  struct Draft {
    const DraftWish* wish = nullptr;
    Memory* memory = nullptr;
    std::unique_ptr<TokenChooser> chooser;
    std::vector<Token> tokens;   // the sequence's and the guesses
    std::vector<Token> guesses;  // so far
    std::uint32_t rows = 0;      // in the pass being planned
    bool done = false;
  };

  Draft begin(const DraftWish& wish);
  bool knows_tokens(const DraftWish& wish) const;
  bool make_room(Memory& memory, std::size_t tokens);
  void plan_rows(std::vector<Draft>& drafts);
  Result<void> run_pass(std::vector<Draft>& drafts);
  void read_guess(Draft& draft, std::uint32_t output);
  Result<void> run(std::span<const StepSequence> sequences);
  std::uint32_t drop(std::map<GenerationId, Memory>::iterator memory);

  Executor& executor_;
  PagePool& pool_;
  std::shared_ptr<StepCost> cost_;
  ModelDrafterOptions options_;
  std::map<GenerationId, Memory> memories_;
  std::uint32_t pages_ = 0;
  std::uint64_t calls_ = 0;
};

}  // namespace molly::engine
