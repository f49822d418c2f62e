#include "engine/schedule/scheduler_state.h"

namespace molly::engine {

void Scheduler::State::read_outputs(const std::vector<StepPart>& plan) {
  const auto ran_at = options.clock();
  for (const StepPart& part : plan) {
    Sequence& sequence = *part.sequence;
    if (!sequence.prompt_is_done) read_prompt_outputs(part);
    sequence.computed = part.first_position + part.rows() - part.drafts;
    if (sequence.computed < sequence.length()) continue;
    if (!sequence.first_token) sequence.first_token = ran_at;
    if (!sequence.prompt_is_done) complete_prompt(sequence);
    if (sequence.request.max_tokens == 0) {
      finish(sequence, FinishReason::length);
    } else {
      choose_tokens(part);
    }
  }
}

void Scheduler::State::read_prompt_outputs(const StepPart& part) {
  const auto first_read = part.rows() - part.outputs();
  for (std::uint32_t i = 0; i < part.outputs(); ++i) {
    part.sequence->prompt_outputs.read(part.sequence->prompt(), part.first_position + first_read + i, executor,
                                       part.first_output + i);
  }
}

void Scheduler::State::complete_prompt(Sequence& sequence) {
  sequence.prompt_is_done = true;
  sequence.prompt_outputs.tell(*sequence.request.sink);
  remember(sequence);
}

// Drafts are guesses of the choices: they are compared with what is chosen, one after another, until one is wrong.
void Scheduler::State::choose_tokens(const StepPart& part) {
  Sequence& sequence = *part.sequence;
  const auto drafts = std::span(part.tokens).last(part.drafts);
  const auto first_output = part.first_output + part.outputs() - part.drafts - 1;
  std::optional<FinishReason> ending;
  std::uint32_t accepted = 0;
  for (std::uint32_t i = 0; i <= part.drafts; ++i) {
    const Choice choice = sequence.request.chooser->choose(executor.logits(first_output + i));
    ending = append(sequence, choice);
    const bool is_as_drafted = i < part.drafts && drafts[i] == choice.token;
    if (is_as_drafted) ++accepted;
    if (ending || !is_as_drafted) break;
  }
  sequence.computed = sequence.length() - 1;
  if (part.drafts > 0) note_drafts(part, accepted, ending ? accepted : part.drafts);
  if (ending) finish(sequence, *ending);
}

std::optional<FinishReason> Scheduler::State::append(Sequence& sequence, const Choice& choice) {
  sequence.tokens.push_back(choice.token);
  ++counters.generated_tokens;
  Fairness::charge_output(sequence, 1);
  const auto reaction = sequence.request.sink->on_token(choice);
  if (choice.end_of_generation || reaction == TokenSink::Reaction::stop) return FinishReason::stop;
  const bool is_at_end =
      sequence.generated() >= sequence.request.max_tokens || sequence.length() >= options.context_length;
  return is_at_end ? std::optional(FinishReason::length) : std::nullopt;
}

void Scheduler::State::note_drafts(const StepPart& part, std::uint32_t accepted, std::uint32_t compared) {
  for (DraftTally* tally : {&part.sequence->timings.drafts, &counters.drafts}) {
    (*tally)[part.draft_kind].drafted += part.drafts;
    (*tally)[part.draft_kind].accepted += accepted;
  }
  if (compared > 0) governor.note(part.sequence->work, part.draft_kind, compared, accepted);
}

}  // namespace molly::engine
