#pragma once

#include <span>
#include <vector>

#include "engine/schedule/generation.h"

// Passes over the logits of a whole vocabulary: written so that a compiler makes vector code of them.
namespace molly::engine {

// The first of the greatest; 0 when there is none (an empty list, or nothing but NaN and -infinity).
Token most_likely_token(std::span<const float> logits);

struct ScoredToken {
  Token token = 0;
  float logit = 0;
};

// The `count` greatest in falling order, of equals the first; without NaN and -infinity.
std::vector<ScoredToken> most_likely_tokens(std::span<const float> logits, std::size_t count);

// ln of the sum of e^logit: log-probabilities are logits less this. Relative error of the sum below 1e-5.
float log_sum_exp(std::span<const float> logits);

}  // namespace molly::engine
