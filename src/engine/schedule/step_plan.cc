#include <algorithm>

#include "engine/schedule/scheduler_state.h"

namespace molly::engine {
namespace {

std::uint32_t wanted_rows(const Sequence& sequence) {
  return std::min(sequence.pause_at, sequence.length()) - sequence.computed;
}

std::uint32_t total(const std::vector<std::uint32_t>& numbers) {
  std::uint32_t sum = 0;
  for (const auto number : numbers) sum += number;
  return sum;
}

std::uint32_t allot_evenly(const std::vector<Sequence*>& prompts, std::uint32_t budget) {
  std::vector<std::uint32_t> wants;
  wants.reserve(prompts.size());
  for (const Sequence* sequence : prompts) wants.push_back(wanted_rows(*sequence));
  const auto shares = divide_evenly(budget, wants);
  for (std::size_t i = 0; i < prompts.size(); ++i) prompts[i]->rows = shares[i];
  return total(shares);
}

// Evenly between members, and then between a member's prompts. Returns what was used.
std::uint32_t allot_by_member(const std::vector<Sequence*>& prompts, std::uint32_t budget) {
  std::vector<std::vector<Sequence*>> by_member;
  for (Sequence* sequence : prompts) {
    const auto found = std::ranges::find(by_member, sequence->member, [](const auto& own) { return own[0]->member; });
    if (found != by_member.end()) {
      found->push_back(sequence);
    } else {
      by_member.push_back({sequence});
    }
  }
  std::vector<std::uint32_t> wants(by_member.size(), 0);
  for (std::size_t i = 0; i < by_member.size(); ++i) {
    for (const Sequence* sequence : by_member[i]) wants[i] += wanted_rows(*sequence);
  }
  const auto shares = divide_evenly(budget, wants);
  for (std::size_t i = 0; i < by_member.size(); ++i) allot_evenly(by_member[i], shares[i]);
  return total(shares);
}

Wanted wanted_outputs(const Sequence& sequence, std::uint32_t until) {
  if (sequence.prompt_outputs.of_every_position() && until > sequence.prompt_outputs.positions_read() &&
      !sequence.prompt_is_done) {
    return Wanted::all;
  }
  const bool is_of_use = sequence.request.max_tokens > 0 || sequence.prompt_outputs.any();
  return until == sequence.length() && is_of_use ? Wanted::last : Wanted::nothing;
}

}  // namespace

std::vector<StepPart> Scheduler::State::plan_step() {
  std::ranges::sort(running, [](const auto& left, const auto& right) { return goes_before(*left, *right); });
  allot_rows();
  // Whoever gives way comes last in the order, and so has not had its turn here.
  for (std::size_t i = 0; i < running.size();) {
    Sequence& sequence = *running[i];
    if (grow(sequence, sequence.computed + sequence.rows)) ++i;
  }
  std::vector<StepPart> plan;
  for (const auto& sequence : running) {
    if (sequence->rows > 0) plan.push_back(part_of(*sequence));
  }
  add_drafts(plan);
  std::uint32_t outputs = 0;
  for (StepPart& part : plan) {
    part.first_output = outputs;
    outputs += part.outputs();
  }
  return plan;
}

// Tokens of those that decode first, then prompts.
void Scheduler::State::allot_rows() {
  std::uint32_t left = executor.max_rows();
  for (const auto& sequence : running) {
    sequence->rows = sequence->decodes() && left > 0 ? 1 : 0;
    left -= sequence->rows;
  }
  allot_to_prompts(std::min(left, options.prefill_chunk));
}

void Scheduler::State::allot_to_prompts(std::uint32_t budget) {
  for (auto next = running.begin(); next != running.end() && budget > 0;) {
    const auto priority = (*next)->request.priority;
    std::vector<Sequence*> prompts;
    for (; next != running.end() && (*next)->request.priority == priority; ++next) {
      if (!(*next)->decodes()) prompts.push_back(next->get());
    }
    budget -= allot_by_member(prompts, budget);
  }
}

StepPart Scheduler::State::part_of(Sequence& sequence) const {
  const auto tokens = std::span(sequence.tokens).subspan(sequence.computed, sequence.rows);
  return {.sequence = &sequence,
          .tokens = {tokens.begin(), tokens.end()},
          .first_position = sequence.computed,
          .wanted = wanted_outputs(sequence, sequence.computed + sequence.rows)};
}

}  // namespace molly::engine
