#include "engine/schedule/prompt_outputs.h"

#include "engine/text/logits.h"

namespace molly::engine {

void PromptOutputs::read(std::span<const Token> prompt, std::uint32_t position, Executor& executor,
                         std::uint32_t output) {
  const bool is_last = position + 1 == prompt.size();
  if (of_every_position() ? position != positions_read_ : !is_last) return;
  positions_read_ = position + 1;
  if (logprobs_wanted_ && !is_last) {
    const auto logits = executor.logits(output);
    const Token next = prompt[position + 1];
    logprobs_.push_back({.token = next, .logprob = logits[static_cast<std::size_t>(next)] - log_sum_exp(logits)});
  }
  if (pooling_ != Pooling::none) pool(executor.hidden(output), is_last);
}

void PromptOutputs::pool(std::span<const float> hidden, bool is_last) {
  if (pooling_ == Pooling::last && !is_last) return;
  sums_.resize(hidden.size(), 0);
  for (std::size_t i = 0; i < hidden.size(); ++i) sums_[i] += static_cast<double>(hidden[i]);
}

void PromptOutputs::tell(TokenSink& sink) const {
  if (logprobs_wanted_) sink.on_prompt_logprobs(logprobs_);
  if (pooling_ == Pooling::none) return;
  const double count = pooling_ == Pooling::mean ? positions_read_ : 1;
  std::vector<float> pooled;
  pooled.reserve(sums_.size());
  for (const double sum : sums_) pooled.push_back(static_cast<float>(sum / count));
  sink.on_embedding(pooled);
}

}  // namespace molly::engine
