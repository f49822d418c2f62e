#include "training/loss/optimizer.h"

#include <gtest/gtest.h>

#include <array>

namespace molly::training {
namespace {

TEST(RateSchedule, rises_then_falls_to_its_end) {
  const RateSchedule schedule{.peak = 1, .steps = 110, .warm_up = 10, .end_share = 0.1};
  EXPECT_DOUBLE_EQ(schedule.at(1), 0.1);
  EXPECT_DOUBLE_EQ(schedule.at(10), 1);
  EXPECT_NEAR(schedule.at(60), 0.55, 1e-12);
  EXPECT_NEAR(schedule.at(110), 0.1, 1e-12);
  EXPECT_NEAR(schedule.at(1000), 0.1, 1e-12);
}

TEST(ClipNorm, scales_only_what_is_too_long) {
  std::array<float, 2> gradient{3, 4};
  EXPECT_DOUBLE_EQ(clip_norm(gradient, 10), 5);
  EXPECT_FLOAT_EQ(gradient[0], 3);
  EXPECT_DOUBLE_EQ(clip_norm(gradient, 1), 5);
  EXPECT_FLOAT_EQ(gradient[1], 0.8F);
  EXPECT_NEAR(clip_norm(gradient, 0), 1, 1e-6);
}

TEST(AdamW, first_step_is_the_rate_against_the_gradient) {
  AdamW optimizer({}, 2);
  std::array<float, 2> parameters{1, 1};
  optimizer.step(parameters, std::array{0.5F, -20.0F}, 0.1);
  EXPECT_NEAR(parameters[0], 0.9, 1e-6);
  EXPECT_NEAR(parameters[1], 1.1, 1e-6);
}

TEST(AdamW, decay_does_not_depend_on_the_gradient) {
  AdamW optimizer({.weight_decay = 0.5}, 1);
  std::array<float, 1> parameter{2};
  optimizer.step(parameter, std::array{0.0F}, 0.1);
  EXPECT_NEAR(parameter[0], 2 * (1 - 0.1 * 0.5), 1e-6);
}

TEST(AdamW, finds_the_minimum_of_a_parabola) {
  AdamW optimizer({}, 2);
  std::array<float, 2> at{5, -3};
  for (int i = 0; i < 2000; ++i) optimizer.step(at, std::array{2 * (at[0] - 1), 20 * (at[1] - 2)}, 0.01);
  EXPECT_NEAR(at[0], 1, 0.02);
  EXPECT_NEAR(at[1], 2, 0.02);
}

TEST(AdamW, goes_on_where_it_was) {
  AdamW whole({}, 1);
  AdamW first({}, 1);
  AdamW second({}, 1);
  std::array<float, 1> a{4};
  std::array<float, 1> b{4};
  for (int i = 0; i < 10; ++i) whole.step(a, std::array{a[0]}, 0.1);
  for (int i = 0; i < 5; ++i) first.step(b, std::array{b[0]}, 0.1);
  second.restore(first.steps(), first.first_moments(), first.second_moments());
  for (int i = 0; i < 5; ++i) second.step(b, std::array{b[0]}, 0.1);
  EXPECT_EQ(a, b);
}

}  // namespace
}  // namespace molly::training
