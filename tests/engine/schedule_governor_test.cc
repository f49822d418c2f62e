#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "engine/schedule/acceptance_governor.h"
#include "engine/schedule/step_cost.h"

namespace molly::engine {
namespace {

using namespace std::chrono_literals;

constexpr DraftKind source = DraftKind::model;

TEST(AcceptanceGovernor, drafts_deeper_the_more_is_accepted) {
  AcceptanceGovernor governor;
  const auto depth = governor.plan("code", source, {.row = 0.1}).depth;
  EXPECT_GT(depth, 0U);
  for (int i = 0; i < 50; ++i) governor.note("code", source, 4, 4);
  EXPECT_GT(governor.plan("code", source, {.row = 0.1}).depth, depth);
  EXPECT_EQ(governor.plan("code", source, {}).depth, 8U);
}

TEST(AcceptanceGovernor, counts_what_drafting_costs_as_what_verifying_costs) {
  AcceptanceGovernor governor;
  governor.note("code", source, 2, 1);
  const DraftPlan free = governor.plan("code", source, {.row = 0.1});
  const DraftPlan dear = governor.plan("code", source, {.row = 0.1, .token = 0.2});
  EXPECT_GT(free.depth, dear.depth);
  EXPECT_GT(free.speed, dear.speed);
  EXPECT_EQ(governor.plan("code", source, {.row = 0.1, .token = 0.5}).depth, 0U);
}

TEST(AcceptanceGovernor, tries_what_is_new) {
  AcceptanceGovernor governor;
  EXPECT_TRUE(governor.plan("code", source, {.row = 0.5, .token = 0.2}).is_trial);
  EXPECT_TRUE(governor.plan("code", source, {.row = 0.5, .token = 0.2}).is_trial) << "nothing was compared yet";
  governor.note("code", source, 1, 1);
  EXPECT_FALSE(governor.plan("code", source, {.row = 0.5, .token = 0.2}).is_trial);
}

TEST(AcceptanceGovernor, stops_where_it_does_not_pay_and_tries_again_ever_more_seldom) {
  AcceptanceGovernor governor;
  for (int i = 0; i < 50; ++i) governor.note("poem", source, 4, 0);
  std::uint32_t tries = 0;
  for (std::uint32_t i = 0; i < 7 * AcceptanceGovernor::retry_after; ++i) {
    const DraftPlan plan = governor.plan("poem", source, {.row = 0.3});
    tries += plan.depth;
    EXPECT_EQ(plan.is_trial, plan.depth > 0);
    if (plan.depth > 0) governor.note("poem", source, plan.depth, 0);
  }
  EXPECT_EQ(tries, 3U);
  EXPECT_GT(governor.plan("code", source, {.row = 0.1}).depth, 0U);
}

TEST(AcceptanceGovernor, goes_on_soon_when_trials_succeed) {
  AcceptanceGovernor governor;
  for (int i = 0; i < 500; ++i) governor.note("text", source, 4, 0);
  std::uint32_t calls = 0;
  for (;; ++calls) {
    const DraftPlan plan = governor.plan("text", source, {.row = 0.1});
    if (plan.depth > 0 && !plan.is_trial) break;
    if (plan.depth > 0) governor.note("text", source, plan.depth, plan.depth);
    ASSERT_LT(calls, 20 * AcceptanceGovernor::retry_after);
  }
}

TEST(AcceptanceGovernor, never_tries_what_cannot_pay) {
  AcceptanceGovernor governor;
  for (std::uint32_t i = 0; i < 4 * AcceptanceGovernor::longest_retry_after; ++i) {
    ASSERT_EQ(governor.plan("poem", source, {.row = 0.1, .token = 0.92}).depth, 0U);
  }
}

TEST(AcceptanceGovernor, counts_only_what_was_put_to_the_test) {
  AcceptanceGovernor governor;
  for (int i = 0; i < 500; ++i) governor.note("half", source, 8, 1);
  EXPECT_NEAR(governor.acceptance("half", source), 0.5, 0.01);
}

TEST(AcceptanceGovernor, tells_sources_and_kinds_of_work_apart) {
  AcceptanceGovernor governor;
  governor.note("code", DraftKind::ngram, 100, 0);
  EXPECT_LT(governor.acceptance("code", DraftKind::ngram), 0.4);
  EXPECT_EQ(governor.acceptance("code", DraftKind::model), 0.5);
  EXPECT_EQ(governor.acceptance("poem", DraftKind::ngram), 0.5);
}

TEST(AcceptanceGovernor, forgets_rather_than_grows_without_end) {
  AcceptanceGovernor governor;
  governor.note("first", source, 100, 0);
  for (std::size_t i = 0; i < AcceptanceGovernor::max_kinds_of_work + 1; ++i) {
    governor.plan(std::to_string(i), source, {.row = 0.1});
  }
  EXPECT_EQ(governor.acceptance("first", source), 0.5);
}

TEST(StepCost, tells_the_fixed_part_from_that_of_each_row) {
  StepCost cost;
  for (std::uint32_t i = 0; i < 40; ++i) {
    const std::uint32_t rows = 1 + i % 8;
    cost.note(rows, 40ms + rows * 10ms);
  }
  EXPECT_NEAR(cost.per_row(), 10, 1e-6);
  EXPECT_NEAR(cost.relative_per_row(1), 0.2, 1e-6);
  EXPECT_NEAR(cost.relative_per_row(16), 0.8, 1e-6);
  EXPECT_NEAR(cost.share(1), 50, 1e-6);
  EXPECT_NEAR(cost.share(4), 20, 1e-6);
}

TEST(StepCost, guesses_before_it_has_seen_passes_of_different_sizes) {
  StepCost cost;
  EXPECT_GT(cost.relative_per_row(1), 0);
  EXPECT_EQ(cost.share(1), 0);
  for (int i = 0; i < 10; ++i) cost.note(4, 50ms);
  EXPECT_EQ(cost.per_row(), 0);
  EXPECT_NEAR(cost.share(5), 10, 1e-6);
}

}  // namespace
}  // namespace molly::engine
