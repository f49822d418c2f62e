#pragma once

#include <llama.h>

#include <memory>
#include <span>
#include <string>

#include "engine/text/sampler.h"

namespace molly::engine {

struct FreeSampler {
  void operator()(llama_sampler* sampler) const { ::llama_sampler_free(sampler); }
};
using OwnedSampler = std::unique_ptr<llama_sampler, FreeSampler>;

// What looks at the tokens so far. It comes before everything that leaves candidates out.
bool has_penalties(const SamplingSettings& settings);
// Whether the samplers see no more than the top_k most likely candidates.
bool starts_with_top_k(const SamplingSettings& settings);

// llama-server's samplers in its order, without those that would do nothing; the last one selects.
OwnedSampler make_chain(const Vocabulary& vocabulary, const SamplingSettings& settings, std::span<const Token> history);

// Null when the grammar does not parse.
OwnedSampler make_grammar(const Vocabulary& vocabulary, const std::string& grammar);
// One that binds from where the tokens' text first holds one of the patterns (regular expressions).
OwnedSampler make_lazy_grammar(const Vocabulary& vocabulary, const std::string& grammar,
                               std::span<const std::string> patterns);

}  // namespace molly::engine
