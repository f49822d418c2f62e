#include <algorithm>
#include <utility>

#include "engine/schedule/scheduler_state.h"

namespace molly::engine {
namespace {

// How much of an answer a source that must first compute the prompt may count on, where the request allows more.
constexpr std::uint32_t usual_answer = 256;

std::uint32_t rows_of(const std::vector<StepPart>& plan) {
  std::uint32_t rows = 0;
  for (const StepPart& part : plan) rows += part.rows();
  return rows;
}

// Trials first; else the faster.
bool goes_later(const DraftOption& left, const DraftOption& right) {
  return std::pair(left.plan.is_trial, left.plan.speed) < std::pair(right.plan.is_trial, right.plan.speed);
}

}  // namespace

// Each sequence's best source is asked, and where it has no idea the next best. Drafts take the rows that are left
// over, and pages that are free: nobody gives way for a guess.
void Scheduler::State::add_drafts(std::vector<StepPart>& plan) {
  std::uint32_t rows_left = executor.max_rows() - rows_of(plan);
  auto candidates = draft_candidates(plan);
  while (!candidates.empty() && rows_left > 0) ask_next_source(candidates, rows_left);
}

std::vector<DraftCandidate> Scheduler::State::draft_candidates(std::vector<StepPart>& plan) {
  std::vector<DraftCandidate> candidates;
  const auto decoding = static_cast<std::uint32_t>(
      std::ranges::count_if(plan, [](const StepPart& part) { return part.sequence->decodes(); }));
  const std::uint32_t rows = rows_of(plan);
  for (StepPart& part : plan) {
    if (!part.sequence->decodes()) continue;
    auto sources = draft_options(*part.sequence, rows, decoding);
    if (!sources.empty()) candidates.push_back({.part = &part, .options = std::move(sources)});
  }
  return candidates;
}

std::vector<DraftOption> Scheduler::State::draft_options(const Sequence& sequence, std::uint32_t step_rows,
                                                         std::uint32_t sequences) {
  const auto most =
      std::min(sequence.request.max_tokens - sequence.generated() - 1, options.context_length - sequence.length() - 1);
  std::vector<DraftOption> found;
  if (most == 0) return found;
  const double share = cost->share(step_rows);
  for (const DraftKind kind : draft_kinds) {
    if (!may_draft(sequence, kind)) continue;
    DraftOption option{.source = kind,
                       .plan = governor.plan(sequence.work, kind, draft_costs(kind, step_rows, sequences))};
    option.plan.depth = std::min(option.plan.depth, most);
    if (option.plan.depth > 0 && pays_its_beginning(sequence, option, share)) found.push_back(option);
  }
  std::ranges::sort(found, goes_later);
  return found;
}

DraftCosts Scheduler::State::draft_costs(DraftKind source, std::uint32_t step_rows, std::uint32_t sequences) {
  const double share = cost->share(step_rows);
  const double token = share > 0 ? draft_source(source)->milliseconds_per_token(sequences) / share : 0;
  DraftCosts costs;
  costs.reserve(options.max_draft_depth);
  for (std::uint32_t depth = 1; depth <= options.max_draft_depth; ++depth) {
    costs.push_back(cost->of_more_rows(step_rows, depth) + token * depth);
  }
  return costs;
}

DraftSource* Scheduler::State::draft_source(DraftKind kind) {
  switch (kind) {
    case DraftKind::ngram: return &ngram_drafter;
    case DraftKind::model: return model_drafter.get();
    case DraftKind::base: return &base_drafter;
    case DraftKind::pushed: return &pushed_drafts;
  }
  return nullptr;
}

bool Scheduler::State::may_draft(const Sequence& sequence, DraftKind source) {
  if (!may_use(sequence.request.drafting, source) || draft_source(source) == nullptr) return false;
  if (source == DraftKind::base) return !sequence.request.adapters.empty();
  return source != DraftKind::pushed || !sequence.request.draft_channel.empty();
}

DraftWish Scheduler::State::draft_wish(const Sequence& sequence) const {
  return {.sequence = sequence.id,
          .tokens = sequence.tokens,
          .chooser = sequence.request.chooser.get(),
          .channel = sequence.request.draft_channel};
}

// What drafting saves over the rest of the answer, against computing the sequence so far.
bool Scheduler::State::pays_its_beginning(const Sequence& sequence, const DraftOption& option, double step_share) {
  const auto tokens_left = std::min(sequence.request.max_tokens - sequence.generated(), usual_answer);
  const double saved = tokens_left * step_share * (1 - 1 / option.plan.speed);
  return draft_source(option.source)->milliseconds_to_catch_up(draft_wish(sequence)) <= saved;
}

void Scheduler::State::ask_next_source(std::vector<DraftCandidate>& candidates, std::uint32_t& rows_left) {
  const DraftKind source = candidates.front().options.back().source;
  std::vector<DraftCandidate*> asked;
  std::vector<DraftWish> wishes;
  for (DraftCandidate& candidate : candidates) {
    const DraftOption& option = candidate.options.back();
    if (option.source != source) continue;
    asked.push_back(&candidate);
    wishes.push_back(draft_wish(*candidate.part->sequence));
    wishes.back().depth = option.plan.depth;
  }
  const auto start = options.clock();
  auto drafts = draft_source(source)->draft(wishes);
  counters.draft_time[source] += options.clock() - start;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    drafts[i].resize(std::min<std::size_t>({drafts[i].size(), wishes[i].depth, rows_left}));
    const auto added = add_draft(*asked[i]->part, source, std::move(drafts[i]));
    rows_left -= added;
    asked[i]->options.pop_back();
    if (added > 0) asked[i]->options.clear();
  }
  std::erase_if(candidates, [](const DraftCandidate& candidate) { return candidate.options.empty(); });
}

std::uint32_t Scheduler::State::add_draft(StepPart& part, DraftKind source, std::vector<Token> draft) {
  const auto is_unknown = [&](Token token) {
    return token < 0 || std::cmp_greater_equal(token, executor.vocabulary());
  };
  draft.erase(std::ranges::find_if(draft, is_unknown), draft.end());
  if (draft.empty()) return 0;
  draft.resize(std::min(draft.size(), room_for_drafts(*part.sequence, draft.size())));
  if (draft.empty()) return 0;
  part.tokens.insert(part.tokens.end(), draft.begin(), draft.end());
  part.drafts = static_cast<std::uint32_t>(draft.size());
  part.draft_kind = source;
  part.wanted = Wanted::all;
  return part.drafts;
}

std::size_t Scheduler::State::room_for_drafts(Sequence& sequence, std::size_t drafts) {
  const auto needed = pages_for(sequence.length() + static_cast<std::uint32_t>(drafts));
  const auto held = static_cast<std::uint32_t>(sequence.pages.size());
  if (needed > held && needed - held <= pool.free()) add_pages(sequence, needed - held);
  return sequence.pages.size() * executor.page_tokens() - sequence.length();
}

void Scheduler::State::forget_drafts(const Sequence& sequence) {
  for (const DraftKind kind : draft_kinds) {
    if (DraftSource* source = draft_source(kind)) source->forget(sequence.id);
  }
}

}  // namespace molly::engine
