// Above temperature 0 drafts must not change how often a text is chosen.
#include <cmath>
#include <random>

#include "engine/schedule/model_drafter.h"
#include "engine/text/sampler.h"
#include "schedule_world.h"
#include "text_model.h"

namespace molly::engine {
namespace {

// A Markov chain over a few tokens of a vocabulary; the others are out of the question.
class MarkovModel : public Executor {
 public:
  // `noise`: how far its opinion is from that of the model without noise.
  explicit MarkovModel(std::uint32_t vocabulary, float noise = 0) : vocabulary_(vocabulary), noise_(noise) {}

  Result<void> run(std::span<const StepSequence> sequences) override {
    outputs_.clear();
    for (const StepSequence& sequence : sequences) {
      if (sequence.wanted == Wanted::nothing) continue;
      const auto tokens = sequence.wanted == Wanted::all ? sequence.tokens : sequence.tokens.last(1);
      for (const Token token : tokens) outputs_.push_back(logits_after(token));
    }
    return {};
  }
  std::span<float> logits(std::uint32_t output) override { return outputs_.at(output); }
  std::span<const float> hidden(std::uint32_t) override { return {}; }
  void copy_page(PageId, PageId) override {}
  std::uint32_t page_tokens() const override { return 16; }
  std::uint32_t vocabulary() const override { return vocabulary_; }
  std::uint32_t max_rows() const override { return 64; }

  std::vector<float> logits_after(Token token) const {
    std::vector<float> logits(vocabulary_, -40);
    for (std::uint32_t next = 0; next < likely_tokens; ++next) {
      logits[first_token + next] = opinion(1, token, next) + noise_ * opinion(2, token, next);
    }
    return logits;
  }

  static constexpr std::uint32_t first_token = 300;
  static constexpr std::uint32_t likely_tokens = 5;

 private:
  static float opinion(std::uint64_t seed, Token token, std::uint64_t next) {
    return static_cast<float>(mixed(mixed(seed, static_cast<std::uint64_t>(token)), next) % 1000) / 350;
  }

  std::uint32_t vocabulary_;
  float noise_;
  std::vector<std::vector<float>> outputs_;
};

constexpr std::uint32_t likely_tokens = MarkovModel::likely_tokens;
constexpr std::uint32_t answer_tokens = 4;

struct CollectingSink : TokenSink {
  std::vector<Token> tokens;
  DraftTally drafts;
  Reaction on_token(const Choice& choice) override {
    tokens.push_back(choice.token);
    return Reaction::go_on;
  }
  void on_end(FinishReason, const GenerationTimings& timings) override { drafts = timings.drafts; }
  void on_error(Error error, const GenerationTimings&) override { ADD_FAILURE() << error.message; }
};

class Sampling {
 public:
  // `noise`: of the drafting model.
  explicit Sampling(SamplingSettings settings, float noise = 0)
      : settings_(std::move(settings)), guesser_(vocabulary_.size(), noise) {
    SchedulerOptions options;
    options.clock = [] { return Scheduler::Clock::time_point{}; };
    adapters_ = std::make_unique<AdapterCache>(
        pool_, PageMemory{[](PageId) { return nullptr; }},
        [](const std::filesystem::path&) -> Result<AdapterImage> { return failure(ErrorCode::not_found, "none"); },
        AdapterCacheOptions{.layers = 1});
    scheduler_ = std::make_unique<Scheduler>(model_, pool_, prefixes_, *adapters_, options);
    scheduler_->set_model_drafter(
        std::make_unique<ModelDrafter>(guesser_, draft_pool_, std::make_shared<StepCost>(),
                                       ModelDrafterOptions{.max_pages = draft_pool_.size(), .clock = options.clock}));
  }

  std::vector<Token> answer(std::uint32_t seed, Drafting drafting) {
    SamplingSettings settings = settings_;
    settings.seed = seed;
    const std::vector<Token> prompt{301, 302, 303, 301, 302};
    auto sink = std::make_shared<CollectingSink>();
    GenerationRequest request{.prompt = prompt, .max_tokens = answer_tokens, .drafting = drafting};
    // Nothing is known of it: as much is drafted each time.
    request.task_class = std::to_string(seed);
    request.chooser = make_chooser(vocabulary_, settings, prompt).value();
    request.sink = sink;
    EXPECT_TRUE(scheduler_->submit(std::move(request), {}));
    while (scheduler_->step({})) {
    }
    drafts.drafted += total(sink->drafts).drafted;
    drafts.accepted += total(sink->drafts).accepted;
    return sink->tokens;
  }

  DraftCounts drafts;

 private:
  const Vocabulary& vocabulary_ = embedded_vocabulary();
  SamplingSettings settings_;
  MarkovModel model_{vocabulary_.size()};
  MarkovModel guesser_;
  PagePool pool_{64};
  PagePool draft_pool_{64};
  PrefixTree prefixes_{pool_, 16};
  std::unique_ptr<AdapterCache> adapters_;
  std::unique_ptr<Scheduler> scheduler_;
};

SamplingSettings full_chain() {
  return {.temperature = 0.9F,
          .dynamic_temperature_range = 0.2F,
          .top_k = 4,
          .top_p = 0.97F,
          .min_p = 0.02F,
          .repeat_penalty = 1.1F,
          .presence_penalty = 0.2F};
}

// The answer's last two tokens as one number: each depends on those before it.
std::size_t cell_of(const std::vector<Token>& tokens) {
  std::size_t cell = 0;
  for (const Token token : std::span(tokens).last(2)) {
    cell = cell * likely_tokens + static_cast<std::size_t>(token) - MarkovModel::first_token;
  }
  return cell;
}

std::vector<double> count(Sampling& sampling, std::uint32_t first_seed, std::uint32_t samples, Drafting drafting) {
  std::vector<double> counts(std::size_t{likely_tokens} * likely_tokens, 0);
  for (std::uint32_t i = 0; i < samples; ++i) ++counts.at(cell_of(sampling.answer(first_seed + i, drafting)));
  return counts;
}

// Chi-square of two samples of the same size, in standard deviations above its mean. Cells with few are left out.
double deviations(const std::vector<double>& left, const std::vector<double>& right) {
  double chi_square = 0;
  double degrees = -1;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const double both = left[i] + right[i];
    if (both < 10) continue;
    chi_square += (left[i] - right[i]) * (left[i] - right[i]) / both;
    ++degrees;
  }
  EXPECT_GT(degrees, 15);
  return (chi_square - degrees) / std::sqrt(2 * degrees);
}

constexpr std::uint32_t samples = 2500;

TEST(DraftDistribution, is_the_models_whatever_the_guesses) {
  for (const float noise : {0.0F, 0.5F, 5.0F}) {
    Sampling sampling(full_chain(), noise);
    const auto undrafted = count(sampling, 0, samples, Drafting::off);
    EXPECT_EQ(sampling.drafts.drafted, 0U);
    for (const Drafting drafting : {Drafting::model, Drafting::automatic}) {
      sampling.drafts = {};
      const auto drafted = count(sampling, 2 * samples, samples, drafting);
      EXPECT_GT(sampling.drafts.accepted, samples / 20) << "else this would have shown nothing";
      if (noise > 0) {
        EXPECT_LT(sampling.drafts.accepted, sampling.drafts.drafted);
      }
      EXPECT_LT(deviations(undrafted, drafted), 3) << "noise " << noise;
    }
  }
}

TEST(DraftDistribution, the_test_would_notice_another_one) {
  Sampling sampling(full_chain());
  auto warmer = full_chain();
  warmer.temperature = 1.6F;
  Sampling other(warmer);
  EXPECT_GT(deviations(count(sampling, 0, samples, Drafting::off), count(other, samples, samples, Drafting::off)), 6);
}

TEST(DraftDistribution, the_same_seed_says_the_same_with_and_without_guesses) {
  for (const SamplingSettings& settings :
       {full_chain(), SamplingSettings{.xtc_probability = 0.5F}, SamplingSettings{.dry_multiplier = 0.8F},
        SamplingSettings{.mirostat = 2}, SamplingSettings{.temperature = 0}}) {
    Sampling sampling(settings, 0.5F);
    for (std::uint32_t seed = 0; seed < 100; ++seed) {
      EXPECT_EQ(sampling.answer(seed, Drafting::automatic), sampling.answer(seed, Drafting::off));
    }
  }
}

TEST(DraftDistribution, a_model_that_agrees_guesses_right_at_any_temperature) {
  for (const SamplingSettings& settings : {full_chain(), SamplingSettings{.temperature = 2}}) {
    Sampling sampling(settings);
    for (std::uint32_t seed = 0; seed < 100; ++seed) sampling.answer(seed, Drafting::model);
    EXPECT_GE(sampling.drafts.drafted, 100U);
    EXPECT_EQ(sampling.drafts.accepted, sampling.drafts.drafted);
  }
}

}  // namespace
}  // namespace molly::engine
