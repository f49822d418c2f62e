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

// A copy goes on from the same state, random numbers included.
class OwnedSampler : public std::unique_ptr<llama_sampler, FreeSampler> {
 public:
  using unique_ptr::unique_ptr;
  OwnedSampler(const OwnedSampler& other) : unique_ptr(other ? ::llama_sampler_clone(other.get()) : nullptr) {}
  OwnedSampler(OwnedSampler&&) = default;
  OwnedSampler& operator=(const OwnedSampler& other) { return *this = OwnedSampler(other); }
  OwnedSampler& operator=(OwnedSampler&&) = default;
  ~OwnedSampler() = default;
};

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
