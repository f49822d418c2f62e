#pragma once

#include <cstddef>
#include <span>

#include "core/json.h"
#include "engine/schedule/generation.h"
#include "engine/text/vocabulary.h"

namespace molly::engine {

// OpenAI's logprobs objects. Tokens that are no whole text are written with U+FFFD; `bytes` has them exactly.
RawJson chat_logprobs(const Vocabulary& vocabulary, std::span<const Choice> tokens);
// `text_offset`: of the first token's text in the whole text, in bytes.
RawJson completion_logprobs(const Vocabulary& vocabulary, std::span<const Choice> tokens, std::size_t text_offset);

// {"tokens":[{"probability":p,"margin":p1-p2}],"mean":p,"lowest":p}: how sure the model was of what it chose.
RawJson confidence(std::span<const Choice> tokens);

}  // namespace molly::engine
