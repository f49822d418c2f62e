#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/request.h"
#include "engine/schedule/generation.h"
#include "engine/text/sampler.h"

namespace molly::engine {

// A request's parameters in the engine's terms. Beside OpenAI's and llama-server's names, the engine's own:
//   adapter        name of one adapter
//   adapter_mix    object of names and weights
//   cache_domain   whose cached prefixes may be shared; absent: nobody's
//   member         for fairness between members
//   priority       whole number, higher first
//   deadline_ms    from now on
//   drafting       where guesses may come from: "auto" (where they pay best), "off", "ngram" (the text itself), "model"
//                  (--draft-model), "base" (the base without the adapter) or "pushed"; the answer is the same
//   draft_channel  a name, hard to guess, by which guesses may be sent to POST /drafts while the answer is made
//   return_tokens  true: the tokens of each chunk of a stream, as "tokens"
//   task_class     for the governor of drafting
//   confidence     true: token-level confidence in the answer's extra members
struct Parameters {
  SamplingSettings sampling;
  std::vector<std::pair<std::string, float>> adapters;
  std::string cache_domain;
  std::string member;
  std::int32_t priority = 0;
  std::uint64_t deadline_ms = 0;  // 0: none
  Drafting drafting = Drafting::automatic;
  std::string draft_channel;
  bool return_tokens = false;
  std::string task_class;
  bool confidence = false;
  bool echo = false;
  bool logprobs = false;
  std::string template_variables;              // chat_template_kwargs
  std::optional<std::string> response_schema;  // of response_format: JSON Schema
};

// invalid_request for a value that is out of range, unsupported_parameter for a name that the engine does not know:
// nothing is ignored.
Result<Parameters> read_parameters(const Request& request);

}  // namespace molly::engine
