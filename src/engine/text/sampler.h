#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "engine/schedule/generation.h"
#include "engine/text/answer/answer_form.h"
#include "engine/text/vocabulary.h"

namespace molly::engine {

// Every sampling parameter of OpenAI and of llama-server, with llama-server's names and defaults where OpenAI has none.
struct SamplingSettings {
  float temperature = 1.0F;  // 0: the most likely token
  float dynamic_temperature_range = 0.0F;
  float dynamic_temperature_exponent = 1.0F;
  std::int32_t top_k = 40;
  float top_p = 0.95F;
  float min_p = 0.05F;
  float typical_p = 1.0F;
  float top_n_sigma = -1.0F;
  float xtc_probability = 0.0F;
  float xtc_threshold = 0.1F;
  float repeat_penalty = 1.0F;
  std::int32_t repeat_last_n = 64;  // -1: the whole context, as with dry_penalty_last_n
  float presence_penalty = 0.0F;
  float frequency_penalty = 0.0F;
  float dry_multiplier = 0.0F;
  float dry_base = 1.75F;
  std::int32_t dry_allowed_length = 2;
  std::int32_t dry_penalty_last_n = -1;
  std::vector<std::string> dry_sequence_breakers = {"\n", ":", "\"", "*"};
  std::int32_t mirostat = 0;  // 0, 1 or 2
  float mirostat_tau = 5.0F;
  float mirostat_eta = 0.1F;
  std::optional<std::uint32_t> seed;
  std::map<Token, float> logit_bias;  // -infinity: never
  bool ignore_end = false;
  std::uint32_t min_tokens = 0;  // before an end token may be chosen
  std::uint32_t min_keep = 0;
  std::string grammar;                      // GBNF; empty: none
  std::shared_ptr<const AnswerForm> calls;  // the grammar is of these calls, and binds from where one begins
  bool logprobs = false;                    // of the chosen token; without it and top_logprobs Choice::logprob stays 0
  std::uint32_t top_logprobs = 0;
};

// invalid_request when the grammar does not parse or a parameter is out of range, naming the field. `history` are the
// prompt's tokens, for penalties. `vocabulary` must outlive the chooser. When the grammar leaves no token at all, the
// chooser ends the generation. choose() changes the logits only while it runs.
Result<std::unique_ptr<TokenChooser>> make_chooser(const Vocabulary& vocabulary, const SamplingSettings& settings,
                                                   std::span<const Token> history);

}  // namespace molly::engine
