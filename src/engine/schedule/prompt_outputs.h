#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/schedule/executor.h"
#include "engine/schedule/generation.h"

namespace molly::engine {

// What a request wants to know of its prompt beside the next token: log-probabilities, pooled hidden states. Read as
// the chunks of the prompt are computed; what was read stays read when the sequence is preempted.
class PromptOutputs {
 public:
  PromptOutputs() = default;
  PromptOutputs(bool logprobs, Pooling pooling) : logprobs_wanted_(logprobs), pooling_(pooling) {}

  // Otherwise only the last position is of interest.
  bool of_every_position() const { return logprobs_wanted_ || pooling_ == Pooling::mean; }
  bool any() const { return logprobs_wanted_ || pooling_ != Pooling::none; }
  std::uint32_t positions_read() const { return positions_read_; }

  // Of the executor's last run: `output` is that of `position`. A position that was read before changes nothing.
  void read(std::span<const Token> prompt, std::uint32_t position, Executor& executor, std::uint32_t output);
  void tell(TokenSink& sink) const;

 private:
  void pool(std::span<const float> hidden, bool is_last);

  bool logprobs_wanted_ = false;
  Pooling pooling_ = Pooling::none;
  std::uint32_t positions_read_ = 0;
  std::vector<TokenLogprob> logprobs_;
  std::vector<double> sums_;  // of hidden states, or the last one
};

}  // namespace molly::engine
