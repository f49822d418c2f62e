#include "engine/schedule/model_drafter.h"

#include <algorithm>
#include <utility>

namespace molly::engine {
namespace {

std::size_t common_tokens(std::span<const Token> left, std::span<const Token> right) {
  return static_cast<std::size_t>(std::ranges::mismatch(left, right).in1 - left.begin());
}

Token most_likely(std::span<const float> logits) {
  return static_cast<Token>(std::ranges::max_element(logits) - logits.begin());
}

}  // namespace

ModelDrafter::ModelDrafter(Executor& executor, PagePool& pool, std::shared_ptr<StepCost> cost,
                           ModelDrafterOptions options)
    : executor_(executor), pool_(pool), cost_(std::move(cost)), options_(std::move(options)) {
  options_.max_rows = std::clamp(options_.max_rows, 1U, executor.max_rows());
}

ModelDrafter::~ModelDrafter() {
  while (!memories_.empty()) drop(memories_.begin());
}

// The first pass computes what is missing of the sequences, as much as it holds, and each further one a guess of each.
std::vector<std::vector<Token>> ModelDrafter::draft(std::span<const DraftWish> wishes) {
  ++calls_;
  std::vector<Draft> drafts;
  drafts.reserve(wishes.size());
  for (const DraftWish& wish : wishes) drafts.push_back(begin(wish));
  const auto is_done = [](const Draft& draft) { return draft.done; };
  while (!std::ranges::all_of(drafts, is_done)) {
    plan_rows(drafts);
    if (!run_pass(drafts)) break;
  }
  std::vector<std::vector<Token>> guesses;
  guesses.reserve(drafts.size());
  for (Draft& draft : drafts) guesses.push_back(std::move(draft.guesses));
  return guesses;
}

ModelDrafter::Draft ModelDrafter::begin(const DraftWish& wish) {
  Draft draft{.wish = &wish, .tokens = {wish.tokens.begin(), wish.tokens.end()}};
  Memory& memory = memories_[wish.sequence];
  memory.last_use = calls_;
  // The last token is computed again where it is known: its logits are wanted.
  memory.tokens.resize(std::min(common_tokens(memory.tokens, wish.tokens), wish.tokens.size() - 1));
  draft.memory = &memory;
  draft.done = !knows_tokens(wish);
  if (wish.chooser != nullptr) draft.chooser = wish.chooser->clone();
  return draft;
}

// Vocabularies may differ in how far they are padded.
bool ModelDrafter::knows_tokens(const DraftWish& wish) const {
  return std::ranges::none_of(wish.tokens,
                              [&](Token token) { return std::cmp_greater_equal(token, executor_.vocabulary()); });
}

void ModelDrafter::plan_rows(std::vector<Draft>& drafts) {
  std::uint32_t left = options_.max_rows;
  for (Draft& draft : drafts) {
    draft.rows = 0;
    if (draft.done) continue;
    const std::size_t known = draft.memory->tokens.size();
    const auto rows = static_cast<std::uint32_t>(std::min<std::size_t>(left, draft.tokens.size() - known));
    draft.done = rows == 0 || !make_room(*draft.memory, known + rows);
    if (draft.done) continue;
    draft.rows = rows;
    left -= rows;
  }
}

bool ModelDrafter::make_room(Memory& memory, std::size_t tokens) {
  const std::size_t page_tokens = executor_.page_tokens();
  const std::size_t needed = (tokens + page_tokens - 1) / page_tokens;
  if (needed <= memory.pages.size()) return true;
  const auto missing = static_cast<std::uint32_t>(needed - memory.pages.size());
  const auto oldest = [&] {
    return std::ranges::min_element(memories_, {}, [](auto& one) { return one.second.last_use; });
  };
  while (pages_ + missing > options_.max_pages || missing > pool_.free()) {
    const auto found = oldest();
    if (found->second.last_use == calls_) return false;
    drop(found);
  }
  const auto pages = pool_.allocate(missing, PageUse::kv);
  memory.pages.insert(memory.pages.end(), pages->begin(), pages->end());
  pages_ += missing;
  return true;
}

Result<void> ModelDrafter::run_pass(std::vector<Draft>& drafts) {
  std::vector<StepSequence> sequences;
  std::vector<Draft*> asked;
  for (Draft& draft : drafts) {
    if (draft.rows == 0) continue;
    const std::size_t known = draft.memory->tokens.size();
    const bool to_the_end = known + draft.rows == draft.tokens.size();
    sequences.push_back({.tokens = std::span(draft.tokens).subspan(known, draft.rows),
                         .first_position = static_cast<std::uint32_t>(known),
                         .pages = draft.memory->pages,
                         .wanted = to_the_end ? Wanted::last : Wanted::nothing});
    if (to_the_end) asked.push_back(&draft);
  }
  if (sequences.empty()) return {};
  if (auto ran = run(sequences); !ran) return ran;
  for (Draft& draft : drafts) {
    const auto computed = std::span(draft.tokens).subspan(draft.memory->tokens.size(), draft.rows);
    draft.memory->tokens.insert(draft.memory->tokens.end(), computed.begin(), computed.end());
    // The rest of a long prompt has to wait for the next step.
    draft.done = draft.done || draft.memory->tokens.size() < draft.tokens.size();
  }
  for (std::uint32_t output = 0; output < asked.size(); ++output) read_guess(*asked[output], output);
  return {};
}

void ModelDrafter::read_guess(Draft& draft, std::uint32_t output) {
  const auto logits = executor_.logits(output);
  const Choice choice = draft.chooser ? draft.chooser->choose(logits) : Choice{.token = most_likely(logits)};
  draft.guesses.push_back(choice.token);
  draft.tokens.push_back(choice.token);
  draft.done = choice.end_of_generation || draft.guesses.size() >= draft.wish->depth;
}

Result<void> ModelDrafter::run(std::span<const StepSequence> sequences) {
  std::uint32_t rows = 0;
  for (const StepSequence& sequence : sequences) rows += static_cast<std::uint32_t>(sequence.tokens.size());
  const auto start = options_.clock();
  auto ran = executor_.run(sequences);
  cost_->note(rows, options_.clock() - start);
  return ran;
}

void ModelDrafter::forget(GenerationId sequence) {
  const auto found = memories_.find(sequence);
  if (found != memories_.end()) drop(found);
}

std::uint32_t ModelDrafter::give_back() {
  const auto holds_pages = [](const auto& one) { return !one.second.pages.empty(); };
  auto oldest = memories_.end();
  for (auto one = memories_.begin(); one != memories_.end(); ++one) {
    if (holds_pages(*one) && (oldest == memories_.end() || one->second.last_use < oldest->second.last_use))
      oldest = one;
  }
  return oldest == memories_.end() ? 0 : drop(oldest);
}

std::uint32_t ModelDrafter::drop(std::map<GenerationId, Memory>::iterator memory) {
  const auto pages = static_cast<std::uint32_t>(memory->second.pages.size());
  pool_.release(memory->second.pages);
  pages_ -= pages;
  memories_.erase(memory);
  return pages;
}

double ModelDrafter::milliseconds_per_token(std::uint32_t sequences) const { return cost_->share(sequences); }

double ModelDrafter::milliseconds_to_catch_up(const DraftWish& wish) const {
  const auto found = memories_.find(wish.sequence);
  const std::size_t known = found == memories_.end() ? 0 : common_tokens(found->second.tokens, wish.tokens);
  return static_cast<double>(wish.tokens.size() - known) * cost_->per_row();
}

Result<void> ModelDrafter::measure() {
  const auto pages = pool_.allocate(1, PageUse::kv);
  if (!pages) return failure(ErrorCode::invalid_request, "the draft model's pool needs at least one page");
  const std::vector<Token> tokens(std::min(executor_.page_tokens(), options_.max_rows), 0);
  Result<void> ran;
  for (const std::size_t rows : {std::size_t{1}, tokens.size(), std::size_t{1}, tokens.size(), std::size_t{1}}) {
    const StepSequence sequence{.tokens = std::span(tokens).first(rows), .pages = *pages};
    if (ran) ran = run({&sequence, 1});
  }
  pool_.release(*pages);
  return ran;
}

}  // namespace molly::engine
