#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "engine/memory/adapter_cache.h"
#include "engine/memory/prefix_tree.h"
#include "engine/schedule/draft_source.h"

// What is asked of the engine, and how it answers.
namespace molly::engine {

struct TokenLogprob {
  Token token = 0;
  float logprob = 0;
};

// The choice of one token.
struct Choice {
  Token token = 0;
  float logprob = 0;                      // of the chosen token under the model's distribution, before samplers
  std::vector<TokenLogprob> most_likely;  // as many as were asked for
  bool end_of_generation = false;         // an end token of the vocabulary
};

// Samplers and grammar of one sequence; has state. choose() also accepts what it chose: speculative tokens are verified
// by choosing in turn and comparing, which keeps the distribution exactly the model's (a draft is a guess of the next
// choice, never a change of it). For a guess without randomness this accepts as often as speculative sampling
// (Leviathan et al., arXiv 2211.17192, algorithm 1; Chen et al., arXiv 2302.01318): with the probability that the model
// gives it.
class TokenChooser {
 public:
  virtual ~TokenChooser() = default;
  virtual Choice choose(std::span<float> logits) = 0;
  // One that would choose the same from the same logits, random numbers included; to guess with. Null: there is none.
  virtual std::unique_ptr<TokenChooser> clone() const { return nullptr; }
};

enum class FinishReason : std::uint8_t { stop, length, cancelled };

struct GenerationTimings {
  std::chrono::nanoseconds queued{};   // until the first token of the prompt was computed
  std::chrono::nanoseconds prefill{};  // until the first token was chosen
  std::chrono::nanoseconds decode{};   // until the end
  std::uint32_t cached_tokens = 0;     // of the prompt, found in the prefix tree
  DraftTally drafts;
  std::uint32_t preemptions = 0;
};

// Receives a generation's tokens, on the engine's thread; must not block.
class TokenSink {
 public:
  enum class Reaction : std::uint8_t { go_on, stop };  // stop: a stop string was found

  virtual ~TokenSink() = default;
  virtual Reaction on_token(const Choice& choice) = 0;
  // Prompt log-probabilities, when asked for: of prompt[i] given what stands before it; for i from 1.
  virtual void on_prompt_logprobs(std::span<const TokenLogprob>) {}
  // Final hidden states pooled over the prompt (embeddings), when asked for: n_embd floats.
  virtual void on_embedding(std::span<const float>) {}
  // The last call.
  virtual void on_end(FinishReason reason, const GenerationTimings& timings) = 0;
  virtual void on_error(Error error, const GenerationTimings& timings) = 0;
};

enum class Pooling : std::uint8_t { none, mean, last };

struct AdapterWeight {
  AdapterId adapter = 0;
  float weight = 1;
};

// Which source of guesses a request may use; automatic: whichever pays best. It is never used where it does not pay.
enum class Drafting : std::uint8_t { off, automatic, ngram, model, base, pushed };
bool may_use(Drafting drafting, DraftKind source);

struct GenerationRequest {
  std::vector<Token> prompt;            // at least one token
  std::uint32_t max_tokens = 0;         // to generate; 0: only the prompt is computed
  std::vector<AdapterWeight> adapters;  // empty: the base; several: their weighted sum
  std::string domain;                   // cache domain; empty: private, nothing is shared
  std::string member;                   // for fairness; empty: nobody in particular
  std::int32_t priority = 0;            // higher goes first
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  bool prompt_logprobs = false;
  Pooling pooling = Pooling::none;
  Drafting drafting = Drafting::off;
  std::string task_class;                 // for the governor of drafting
  std::string draft_channel;              // by which guesses are pushed; empty: none are
  std::unique_ptr<TokenChooser> chooser;  // null only with max_tokens 0
  std::shared_ptr<TokenSink> sink;
};

// In order of adapters, each once, none of weight 0: equal mixtures look equal.
std::vector<AdapterWeight> canonical(std::vector<AdapterWeight> adapters);
// What PrefixKey::computation is for a canonical mixture. An AdapterId stands for one version of one file.
std::string computation_of(std::span<const AdapterWeight> adapters);

}  // namespace molly::engine
