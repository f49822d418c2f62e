#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "engine/text/logits.h"
#include "engine/text/sampler.h"
#include "text_model.h"

namespace molly::engine {
namespace {

using testing::HasSubstr;

constexpr float never = -std::numeric_limits<float>::infinity();

std::vector<float> random_logits(std::uint32_t seed, std::size_t size = embedded_vocabulary().size()) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 4);
  std::vector<float> logits(size);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

std::unique_ptr<TokenChooser> chooser(const SamplingSettings& settings, const std::vector<Token>& history = {}) {
  auto made = make_chooser(embedded_vocabulary(), settings, history);
  EXPECT_TRUE(made) << made.error().field << " " << made.error().message;
  return made ? *std::move(made) : nullptr;
}

Token token_of(std::string_view text) {
  const auto tokens = embedded_vocabulary().tokenize(text, SpecialTokens::as_text, Beginning::bare);
  EXPECT_EQ(tokens.size(), 1U) << text;
  return tokens.front();
}

Error refusal(const SamplingSettings& settings) {
  auto made = make_chooser(embedded_vocabulary(), settings, {});
  return made ? Error{.message = "accepted"} : made.error();
}

TEST(TextLogits, the_first_of_the_greatest_is_the_most_likely) {
  EXPECT_EQ(most_likely_token({}), 0);
  const std::vector<float> none(40, never);
  EXPECT_EQ(most_likely_token(none), 0);
  for (const std::size_t size : {1UZ, 15UZ, 16UZ, 17UZ, 1023UZ, 1025UZ, 5000UZ}) {
    for (std::uint32_t seed = 0; seed < 20; ++seed) {
      std::vector<float> logits = random_logits(seed, size);
      logits[seed % size] = 100;
      logits[size - 1] = 100;
      EXPECT_EQ(most_likely_token(logits), std::ranges::max_element(logits) - logits.begin());
    }
  }
}

TEST(TextLogits, the_most_likely_come_in_order_and_none_that_is_forbidden) {
  std::vector<float> logits = random_logits(7, 3001);
  logits[5] = std::numeric_limits<float>::quiet_NaN();
  logits[6] = never;
  std::vector<std::pair<float, Token>> sorted;
  for (std::size_t at = 0; at < logits.size(); ++at) {
    if (logits[at] > never) sorted.emplace_back(-logits[at], static_cast<Token>(at));
  }
  std::ranges::sort(sorted);
  for (const std::size_t count : {0UZ, 1UZ, 40UZ, 5000UZ}) {
    const auto found = most_likely_tokens(logits, count);
    ASSERT_EQ(found.size(), std::min(count, sorted.size()));
    for (std::size_t at = 0; at < found.size(); ++at) EXPECT_EQ(found[at].token, sorted[at].second);
  }
}

TEST(TextLogits, the_sum_of_exponentials_is_that_of_double_precision) {
  for (const std::size_t size : {1UZ, 17UZ, 2048UZ, 128'000UZ}) {
    std::vector<float> logits = random_logits(3, size);
    double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
    EXPECT_NEAR(log_sum_exp(logits), std::log(sum), 2e-5);
    logits[0] = never;
  }
  EXPECT_EQ(log_sum_exp(std::vector<float>(3, never)), never);
}

TEST(TextSampler, temperature_0_is_the_most_likely_token_on_every_path) {
  std::vector<float> logits = random_logits(1);
  const Token best = most_likely_token(logits);
  for (const SamplingSettings& settings :
       {SamplingSettings{.temperature = 0}, SamplingSettings{.temperature = 0, .presence_penalty = 0.001F},
        SamplingSettings{.temperature = 0, .grammar = "root ::= [\\x00-\\U0010FFFF]*"}, SamplingSettings{.top_k = 1}}) {
    EXPECT_EQ(chooser(settings)->choose(logits).token, best);
  }
}

TEST(TextSampler, equal_seeds_choose_alike_and_others_do_not) {
  const auto run = [](std::uint32_t seed) {
    const auto one = chooser({.seed = seed});
    std::vector<Token> tokens;
    for (std::uint32_t step = 0; step < 40; ++step) {
      std::vector<float> logits = random_logits(step);
      tokens.push_back(one->choose(logits).token);
    }
    return tokens;
  };
  EXPECT_EQ(run(5), run(5));
  EXPECT_NE(run(5), run(6));
}

// Chi-square over the tokens that are left, against the distribution that the settings describe.
TEST(TextSampler, the_draw_follows_temperature_and_top_k) {
  std::vector<float> logits(embedded_vocabulary().size(), -20.0F);
  const std::vector<float> peaks = {2.0F, 1.5F, 1.0F, 0.0F, -1.0F};
  for (std::size_t at = 0; at < peaks.size(); ++at) logits[100 + at] = peaks[at];
  const auto one = chooser({.temperature = 0.7F, .top_k = 4, .top_p = 1, .min_p = 0, .seed = 11});
  std::map<Token, int> counts;
  constexpr int draws = 20'000;
  for (int draw = 0; draw < draws; ++draw) ++counts[one->choose(logits).token];
  double sum = 0;
  for (std::size_t at = 0; at < 4; ++at) sum += std::exp(static_cast<double>(peaks[at]) / 0.7);
  double chi_square = 0;
  for (std::size_t at = 0; at < 4; ++at) {
    const double expected = draws * std::exp(static_cast<double>(peaks[at]) / 0.7) / sum;
    chi_square += std::pow(counts[static_cast<Token>(100 + at)] - expected, 2) / expected;
  }
  EXPECT_EQ(counts.size(), 4U);
  EXPECT_LT(chi_square, 16.3);  // 0.1 % at 3 degrees of freedom
}

// The fast selection must not change what the whole chain would keep.
TEST(TextSampler, selecting_before_the_samplers_keeps_the_distribution) {
  const SamplingSettings fast{.temperature = 1, .top_k = 40, .top_p = 0.9F, .min_p = 0.02F, .seed = 3};
  SamplingSettings slow = fast;
  slow.frequency_penalty = 1e-9F;  // makes every candidate pass the chain
  const auto left = chooser(fast);
  const auto right = chooser(slow);
  for (std::uint32_t step = 0; step < 300; ++step) {
    std::vector<float> logits = random_logits(step);
    EXPECT_EQ(left->choose(logits).token, right->choose(logits).token) << step;
  }
}

TEST(TextSampler, log_probabilities_are_the_models_before_bias_and_samplers) {
  std::vector<float> logits = random_logits(2);
  const std::vector<float> before = logits;
  const auto ranked = most_likely_tokens(logits, 3);
  const auto one = chooser({.temperature = 0, .logit_bias = {{7, 1000.0F}}, .top_logprobs = 3});
  const Choice choice = one->choose(logits);
  EXPECT_EQ(choice.token, 7);
  EXPECT_NEAR(choice.logprob, before[7] - log_sum_exp(before), 1e-5);
  ASSERT_EQ(choice.most_likely.size(), 3U);
  EXPECT_EQ(choice.most_likely[0].token, ranked[0].token);
  EXPECT_NEAR(choice.most_likely[0].logprob, ranked[0].logit - log_sum_exp(before), 1e-5);
  EXPECT_EQ(logits, before);
  EXPECT_LT(chooser({.temperature = 0, .logprobs = true})->choose(logits).logprob, 0);
}

TEST(TextSampler, bias_forbids_and_end_tokens_wait_for_min_tokens) {
  const Token end = embedded_vocabulary().end().value();
  std::vector<float> logits = random_logits(4);
  const Token best = most_likely_token(logits);
  EXPECT_NE(chooser({.temperature = 0, .logit_bias = {{best, never}}})->choose(logits).token, best);
  logits[static_cast<std::size_t>(end)] = 100;
  const auto patient = chooser({.temperature = 0, .min_tokens = 2});
  EXPECT_FALSE(patient->choose(logits).end_of_generation);
  EXPECT_EQ(patient->choose(logits).token, best);
  const Choice third = patient->choose(logits);
  EXPECT_EQ(third.token, end);
  EXPECT_TRUE(third.end_of_generation);
  EXPECT_EQ(chooser({.temperature = 0, .ignore_end = true})->choose(logits).token, best);
}

TEST(TextSampler, penalties_see_the_prompt_and_what_was_chosen) {
  std::vector<float> logits(embedded_vocabulary().size(), 0.0F);
  logits[300] = 5;
  logits[301] = 4.5F;
  logits[302] = 4.2F;
  const auto one = chooser({.temperature = 0, .presence_penalty = 1}, {300});
  EXPECT_EQ(one->choose(logits).token, 301);
  EXPECT_EQ(one->choose(logits).token, 302);
  const auto repeated = chooser({.temperature = 0, .repeat_penalty = 1.3F, .repeat_last_n = -1}, {300});
  EXPECT_EQ(repeated->choose(logits).token, 301);
  const auto dry =
      chooser({.temperature = 0, .dry_multiplier = 2, .dry_sequence_breakers = {}}, {10, 11, 12, 300, 13, 10, 11, 12});
  EXPECT_EQ(dry->choose(logits).token, 301);
}

TEST(TextSampler, mirostat_and_the_rarer_samplers_choose_tokens) {
  for (SamplingSettings settings :
       {SamplingSettings{.mirostat = 1}, SamplingSettings{.mirostat = 2}, SamplingSettings{.typical_p = 0.5F},
        SamplingSettings{.top_n_sigma = 1}, SamplingSettings{.xtc_probability = 1}, SamplingSettings{.top_k = 0},
        SamplingSettings{.dynamic_temperature_range = 0.5F}, SamplingSettings{.top_p = 0}}) {
    settings.seed = 1;
    const auto one = chooser(settings);
    for (std::uint32_t step = 0; step < 20; ++step) {
      std::vector<float> logits = random_logits(step);
      const Token token = one->choose(logits).token;
      EXPECT_GE(token, 0);
      EXPECT_LT(static_cast<std::uint32_t>(token), embedded_vocabulary().size());
    }
  }
}

TEST(TextSampler, a_grammar_is_kept_on_every_path) {
  for (const float temperature : {0.0F, 1.0F}) {
    for (const int top_k : {0, 1, 40}) {
      const auto one =
          chooser({.temperature = temperature, .top_k = top_k, .seed = 1, .grammar = R"(root ::= "abc" [0-9]{3})"});
      std::string text;
      Choice choice;
      for (std::uint32_t step = 0; step < 20 && !choice.end_of_generation; ++step) {
        std::vector<float> logits = random_logits(step);
        choice = one->choose(logits);
        text += embedded_vocabulary().piece(choice.token);
      }
      EXPECT_TRUE(choice.end_of_generation);
      EXPECT_EQ(text.size(), 6U) << text;
      EXPECT_TRUE(text.starts_with("abc")) << text;
    }
  }
}

TEST(TextSampler, a_grammar_that_leaves_no_token_ends_the_generation) {
  std::vector<float> logits = random_logits(1);
  SamplingSettings settings{.temperature = 0, .ignore_end = true, .grammar = R"(root ::= "a")"};
  const auto one = chooser(settings);
  EXPECT_EQ(one->choose(logits).token, token_of("a"));
  EXPECT_TRUE(one->choose(logits).end_of_generation);
  EXPECT_TRUE(one->choose(logits).end_of_generation);
  std::vector<float> none(logits.size(), never);
  for (const float temperature : {0.0F, 1.0F}) {
    EXPECT_TRUE(chooser({.temperature = temperature})->choose(none).end_of_generation);
  }
}

TEST(TextSampler, a_parameter_out_of_range_is_named) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(refusal({.temperature = -1}).field, "temperature");
  EXPECT_EQ(refusal({.temperature = nan}).field, "temperature");
  EXPECT_EQ(refusal({.top_p = 1.5F}).field, "top_p");
  EXPECT_EQ(refusal({.repeat_penalty = 0}).field, "repeat_penalty");
  EXPECT_EQ(refusal({.mirostat = 3}).field, "mirostat");
  EXPECT_EQ(refusal({.logit_bias = {{-1, 0.0F}}}).field, "logit_bias");
  EXPECT_EQ(refusal({.logit_bias = {{1 << 30, 0.0F}}}).field, "logit_bias");
  EXPECT_EQ(refusal({.logit_bias = {{1, nan}}}).field, "logit_bias");
  EXPECT_EQ(refusal({.dry_sequence_breakers = {""}}).field, "dry_sequence_breakers");
  EXPECT_EQ(refusal({.top_logprobs = 1U << 30}).field, "top_logprobs");
  EXPECT_EQ(refusal({.repeat_penalty = 2, .repeat_last_n = 2'000'000'000}).message, "accepted");
}

TEST(TextSampler, a_grammar_that_does_not_parse_is_refused) {
  for (const std::string grammar : {"root := \"a\"", "other ::= \"a\"", "root ::= missing", "root ::= root \"a\"",
                                    "root ::= \"a", "root ::= [a", "root ::= \"a\"{99999999}", "root ::= ("}) {
    EXPECT_EQ(refusal({.grammar = grammar}).field, "grammar") << grammar;
  }
  EXPECT_EQ(refusal({.grammar = "root ::= " + std::string(100'000, '(')}).field, "grammar");
}

}  // namespace
}  // namespace molly::engine
