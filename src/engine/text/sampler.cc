#include "engine/text/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <ranges>
#include <utility>

#include "engine/text/binding_grammar.h"
#include "engine/text/logits.h"
#include "engine/text/sampler_chain.h"
#include "engine/text/sampler_settings.h"

namespace molly::engine {
namespace {

constexpr float never = -std::numeric_limits<float>::infinity();
constexpr std::int32_t widest_selection = 1024;  // candidates picked out of the logits before the samplers see them
constexpr std::size_t grammar_tries = 256;       // likely candidates shown to the grammar before the whole vocabulary

// Changes to logits, undone at the end: the caller's stay the model's own.
class Overlay {
 public:
  explicit Overlay(std::span<float> logits) : logits_(logits) {}
  Overlay(const Overlay&) = delete;
  Overlay& operator=(const Overlay&) = delete;
  ~Overlay() {
    for (const auto& [token, before] : undo_ | std::views::reverse) logits_[token] = before;
  }

  void add(Token token, float bias) {
    const auto at = static_cast<std::size_t>(token);
    if (at >= logits_.size()) return;
    undo_.emplace_back(at, logits_[at]);
    logits_[at] += bias;
  }
  void forbid(std::span<const Token> tokens) {
    for (const Token token : tokens) add(token, never);
  }

 private:
  std::span<float> logits_;
  std::vector<std::pair<std::size_t, float>> undo_;
};

// A list of candidates with what llama.cpp's samplers make of it.
class Candidates {
 public:
  Candidates() = default;
  // What it holds is of one choice, and no part of a chooser's state.
  Candidates(const Candidates&) {}
  Candidates& operator=(const Candidates&) = delete;
  ~Candidates() = default;

  void take_all(std::span<const float> logits) {
    data_.resize(logits.size());
    for (std::size_t at = 0; at < logits.size(); ++at) data_[at] = {static_cast<Token>(at), logits[at], 0.0F};
    array_ = {data_.data(), data_.size(), -1, false};
  }

  void take(std::span<const ScoredToken> tokens) {
    data_.clear();
    for (const auto& [token, logit] : tokens) data_.push_back({token, logit, 0.0F});
    array_ = {data_.data(), data_.size(), -1, true};
  }

  void apply(llama_sampler* sampler) { ::llama_sampler_apply(sampler, &array_); }
  void apply(const BindingGrammar& grammar) { grammar.apply(array_); }

  // Leaves out what must not be chosen: samplers take a list of nothing else for a list of equals.
  void drop_forbidden() {
    const auto kept = std::remove_if(data_.begin(), data_.end(), [](const auto& one) { return !(one.logit > never); });
    data_.erase(kept, data_.end());
    array_.data = data_.data();
    array_.size = data_.size();
  }

  std::size_t size() const { return array_.size; }

  std::optional<Token> selected() const {
    if (array_.selected < 0 || static_cast<std::size_t>(array_.selected) >= array_.size) return std::nullopt;
    return array_.data[array_.selected].id;
  }

 private:
  std::vector<llama_token_data> data_;
  llama_token_data_array array_{};
};

class Chooser final : public TokenChooser {
 public:
  Chooser(const Vocabulary& vocabulary, const SamplingSettings& settings, OwnedSampler chain,
          std::unique_ptr<BindingGrammar> grammar)
      : vocabulary_(vocabulary),
        bias_(settings.logit_bias),
        chain_(std::move(chain)),
        grammar_(grammar ? std::optional(std::move(*grammar)) : std::nullopt),
        min_tokens_(settings.min_tokens),
        top_logprobs_(settings.top_logprobs),
        ignore_end_(settings.ignore_end),
        logprobs_(settings.logprobs || settings.top_logprobs > 0),
        greedy_(settings.temperature == 0 && settings.mirostat == 0 && !has_penalties(settings)),
        selection_(greedy_                       ? 1
                   : starts_with_top_k(settings) ? settings.top_k
                                                 : 0) {}

  Choice choose(std::span<float> logits) override {
    Choice choice;
    choice.token = choose_token(logits);
    choice.end_of_generation = vocabulary_.is_end(choice.token) || dead_end_;
    if (logprobs_ && !logits.empty()) tell_logprobs(choice, logits);
    accept(choice.token);
    return choice;
  }

  std::unique_ptr<TokenChooser> clone() const override {
    auto copy = std::make_unique<Chooser>(*this);
    copy->logprobs_ = false;
    return copy;
  }

 private:
  Token choose_token(std::span<float> logits) {
    Overlay overlay(logits);
    for (const auto& [token, bias] : bias_) overlay.add(token, bias);
    if (is_bound()) overlay.forbid(vocabulary_.malformed_tokens());
    if (ignore_end_ || chosen_ < min_tokens_) overlay.forbid(vocabulary_.end_tokens());
    return choose_within(logits, overlay);
  }

  bool is_bound() const { return grammar_ && grammar_->binds(); }

  // Sampling first and asking the grammar about the one token is what llama-server does: seldom is the answer no.
  Token choose_within(std::span<const float> logits, Overlay& overlay) {
    while (true) {
      const std::optional<Token> token = draw(logits);
      if (token && (!grammar_ || grammar_->allows(*token))) return *token;
      if (is_bound()) return draw_allowed(logits);
      if (!token) return end();
      overlay.add(*token, never);
    }
  }

  std::optional<Token> draw(std::span<const float> logits) {
    if (greedy_) {
      const Token token = most_likely_token(logits);
      return static_cast<std::size_t>(token) < logits.size() && logits[static_cast<std::size_t>(token)] > never
                 ? std::optional(token)
                 : std::nullopt;
    }
    if (selection_ > 0 && selection_ <= widest_selection) {
      candidates_.take(most_likely_tokens(logits, static_cast<std::size_t>(selection_)));
    } else {
      candidates_.take_all(logits);
      candidates_.drop_forbidden();
    }
    return draw_candidate();
  }

  std::optional<Token> draw_candidate() {
    if (candidates_.size() == 0) return std::nullopt;
    candidates_.apply(chain_.get());
    return candidates_.selected();
  }

  Token draw_allowed(std::span<const float> logits) {
    if (selection_ > 0 && static_cast<std::size_t>(selection_) <= grammar_tries) {
      candidates_.take(most_likely_tokens(logits, grammar_tries));
      candidates_.apply(*grammar_);
      candidates_.drop_forbidden();
    }
    // As many as top_k keeps: then no unlikelier candidate can matter.
    if (selection_ <= 0 || candidates_.size() < static_cast<std::size_t>(selection_)) {
      candidates_.take_all(logits);
      candidates_.drop_forbidden();
      candidates_.apply(*grammar_);
      candidates_.drop_forbidden();
    }
    const std::optional<Token> token = draw_candidate();
    return token ? *token : end();
  }

  Token end() {
    dead_end_ = true;
    return vocabulary_.end().value_or(vocabulary_.end_tokens().empty() ? 0 : vocabulary_.end_tokens().front());
  }

  void accept(Token token) {
    ++chosen_;
    if (dead_end_) return;
    if (grammar_) grammar_->accept(token);
    ::llama_sampler_accept(chain_.get(), token);
  }

  void tell_logprobs(Choice& choice, std::span<const float> logits) const {
    const float total = log_sum_exp(logits);
    choice.logprob = logits[static_cast<std::size_t>(choice.token)] - total;
    for (const auto& [token, logit] : most_likely_tokens(logits, top_logprobs_)) {
      choice.most_likely.push_back({token, logit - total});
    }
  }

  const Vocabulary& vocabulary_;
  std::map<Token, float> bias_;
  OwnedSampler chain_;
  std::optional<BindingGrammar> grammar_;
  std::uint32_t min_tokens_;
  std::uint32_t top_logprobs_;
  bool ignore_end_;
  bool logprobs_;
  bool greedy_;
  std::int32_t selection_;  // what the chain leaves at most, when nothing before it needs to see more; 0: unknown
  Candidates candidates_;
  std::uint64_t chosen_ = 0;
  bool dead_end_ = false;
};

}  // namespace

Result<std::unique_ptr<TokenChooser>> make_chooser(const Vocabulary& vocabulary, const SamplingSettings& settings,
                                                   std::span<const Token> history) {
  if (auto checked = check_settings(settings, vocabulary); !checked) return std::unexpected(checked.error());
  std::unique_ptr<BindingGrammar> grammar;
  if (!settings.grammar.empty()) {
    grammar = settings.calls ? BindingGrammar::from_call(vocabulary, settings.grammar, settings.calls)
                             : BindingGrammar::from_start(vocabulary, settings.grammar);
    if (!grammar) return failure(ErrorCode::invalid_request, "is not a grammar that llama.cpp understands", "grammar");
  }
  return std::make_unique<Chooser>(vocabulary, settings, make_chain(vocabulary, settings, history), std::move(grammar));
}

}  // namespace molly::engine
