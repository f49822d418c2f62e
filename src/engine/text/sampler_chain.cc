#include "engine/text/sampler_chain.h"

#include <algorithm>

namespace molly::engine {
namespace {

constexpr std::int64_t longest_generation = 32'768;  // that a penalty over the whole context remembers

bool has_repetition_penalties(const SamplingSettings& settings) {
  const bool any =
      settings.repeat_penalty != 1.0F || settings.presence_penalty != 0.0F || settings.frequency_penalty != 0.0F;
  return any && settings.repeat_last_n != 0;
}

bool has_dry(const SamplingSettings& settings) {
  return settings.dry_multiplier > 0.0F && settings.dry_base >= 1.0F && settings.dry_penalty_last_n != 0;
}

// The sampler keeps a ring of that many tokens, so a client must not choose its size freely.
std::int32_t window(std::int32_t asked, std::span<const Token> history) {
  const std::int64_t whole = std::min<std::int64_t>(static_cast<std::int64_t>(history.size()), INT32_MAX / 2);
  const std::int64_t most = whole + longest_generation;
  return static_cast<std::int32_t>(asked < 0 ? most : std::min<std::int64_t>(asked, most));
}

class Chain {
 public:
  Chain(const Vocabulary& vocabulary, const SamplingSettings& settings, std::span<const Token> history)
      : vocabulary_(vocabulary),
        settings_(settings),
        history_(history),
        seed_(settings.seed.value_or(LLAMA_DEFAULT_SEED)) {
    llama_sampler_chain_params params = ::llama_sampler_chain_default_params();
    params.no_perf = true;
    chain_.reset(::llama_sampler_chain_init(params));
  }

  OwnedSampler make() && {
    if (settings_.mirostat != 0) {
      add_mirostat();
    } else {
      add_penalties();
      if (settings_.temperature > 0) {
        add_cuts();
        add_draw();
      } else {
        add(::llama_sampler_init_greedy());
      }
    }
    accept_history();
    return std::move(chain_);
  }

 private:
  void add(llama_sampler* sampler) { ::llama_sampler_chain_add(chain_.get(), sampler); }
  std::int32_t tokens() const { return static_cast<std::int32_t>(vocabulary_.size()); }

  void add_penalties() {
    const SamplingSettings& s = settings_;
    if (has_repetition_penalties(s)) {
      add(::llama_sampler_init_penalties(tokens(), window(s.repeat_last_n, history_), s.repeat_penalty,
                                         s.frequency_penalty, s.presence_penalty));
    }
    if (has_dry(s)) add_dry();
  }

  void add_dry() {
    std::vector<const char*> breakers;
    breakers.reserve(settings_.dry_sequence_breakers.size());
    for (const std::string& text : settings_.dry_sequence_breakers) breakers.push_back(text.c_str());
    add(::llama_sampler_init_dry(vocabulary_.handle(), settings_.dry_multiplier, settings_.dry_base,
                                 settings_.dry_allowed_length, window(settings_.dry_penalty_last_n, history_),
                                 breakers.data(), breakers.size()));
  }

  void add_cuts() {
    const SamplingSettings& s = settings_;
    if (s.top_n_sigma > 0) add(::llama_sampler_init_top_n_sigma(s.top_n_sigma));
    if (s.top_k > 0) add(::llama_sampler_init_top_k(s.top_k));
    if (s.typical_p < 1) add(::llama_sampler_init_typical(s.typical_p, s.min_keep));
    if (s.top_p < 1) add(::llama_sampler_init_top_p(s.top_p, s.min_keep));
    if (s.min_p > 0) add(::llama_sampler_init_min_p(s.min_p, s.min_keep));
    if (s.xtc_probability > 0) add(::llama_sampler_init_xtc(s.xtc_probability, s.xtc_threshold, s.min_keep, seed_));
  }

  void add_draw() {
    const SamplingSettings& s = settings_;
    add(::llama_sampler_init_temp_ext(s.temperature, s.dynamic_temperature_range, s.dynamic_temperature_exponent));
    add(::llama_sampler_init_dist(seed_));
  }

  void add_mirostat() {
    const SamplingSettings& s = settings_;
    add(::llama_sampler_init_temp(s.temperature));
    if (s.mirostat == 1) {
      add(::llama_sampler_init_mirostat(tokens(), seed_, s.mirostat_tau, s.mirostat_eta, 100));
    } else {
      add(::llama_sampler_init_mirostat_v2(seed_, s.mirostat_tau, s.mirostat_eta));
    }
  }

  void accept_history() {
    if (!has_penalties(settings_)) return;
    for (const Token token : history_) ::llama_sampler_accept(chain_.get(), token);
  }

  const Vocabulary& vocabulary_;
  const SamplingSettings& settings_;
  std::span<const Token> history_;
  std::uint32_t seed_;
  OwnedSampler chain_;
};

}  // namespace

bool has_penalties(const SamplingSettings& settings) {
  return settings.mirostat == 0 && (has_repetition_penalties(settings) || has_dry(settings));
}

bool starts_with_top_k(const SamplingSettings& settings) {
  return settings.mirostat == 0 && !has_penalties(settings) && settings.top_n_sigma <= 0 && settings.top_k > 0;
}

OwnedSampler make_chain(const Vocabulary& vocabulary, const SamplingSettings& settings,
                        std::span<const Token> history) {
  return Chain(vocabulary, settings, history).make();
}

OwnedSampler make_grammar(const Vocabulary& vocabulary, const std::string& grammar) {
  return OwnedSampler(::llama_sampler_init_grammar(vocabulary.handle(), grammar.c_str(), "root"));
}

OwnedSampler make_lazy_grammar(const Vocabulary& vocabulary, const std::string& grammar,
                               std::span<const std::string> patterns) {
  std::vector<const char*> texts;
  texts.reserve(patterns.size());
  for (const std::string& pattern : patterns) texts.push_back(pattern.c_str());
  return OwnedSampler(::llama_sampler_init_grammar_lazy_patterns(vocabulary.handle(), grammar.c_str(), "root",
                                                                 texts.data(), texts.size(), nullptr, 0));
}

}  // namespace molly::engine
