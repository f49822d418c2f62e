#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "engine/schedule/acceptance_governor.h"
#include "engine/schedule/step_cost.h"

namespace molly::engine {
namespace {

using namespace std::chrono_literals;

constexpr DraftKind source = DraftKind::model;

// `row`: of verifying one more token; `token`: of drafting it.
struct DraftCost {
  double row = 0;
  double token = 0;
};

DraftCosts costs(DraftCost cost) {
  DraftCosts out;
  for (int depth = 1; depth <= 8; ++depth) out.push_back((cost.row + cost.token) * depth);
  return out;
}

TEST(AcceptanceGovernor, drafts_deeper_the_more_is_accepted) {
  AcceptanceGovernor governor;
  const auto depth = governor.plan("code", source, costs({.row = 0.1})).depth;
  EXPECT_GT(depth, 0U);
  for (int i = 0; i < 50; ++i) governor.note("code", source, 4, 4);
  EXPECT_GT(governor.plan("code", source, costs({.row = 0.1})).depth, depth);
  EXPECT_EQ(governor.plan("code", source, costs({})).depth, 8U);
}

TEST(AcceptanceGovernor, counts_what_drafting_costs_as_what_verifying_costs) {
  AcceptanceGovernor governor;
  governor.note("code", source, 2, 1);
  const DraftPlan free = governor.plan("code", source, costs({.row = 0.1}));
  const DraftPlan dear = governor.plan("code", source, costs({.row = 0.1, .token = 0.2}));
  EXPECT_GT(free.depth, dear.depth);
  EXPECT_GT(free.speed, dear.speed);
  EXPECT_EQ(governor.plan("code", source, costs({.row = 0.1, .token = 0.5})).depth, 0U);
}

TEST(AcceptanceGovernor, tries_what_is_new) {
  AcceptanceGovernor governor;
  EXPECT_TRUE(governor.plan("code", source, costs({.row = 0.5, .token = 0.2})).is_trial);
  EXPECT_TRUE(governor.plan("code", source, costs({.row = 0.5, .token = 0.2})).is_trial) << "nothing was compared yet";
  governor.note("code", source, 1, 1);
  EXPECT_FALSE(governor.plan("code", source, costs({.row = 0.5, .token = 0.2})).is_trial);
}

TEST(AcceptanceGovernor, stops_where_it_does_not_pay_and_tries_again_ever_more_seldom) {
  AcceptanceGovernor governor;
  for (int i = 0; i < 50; ++i) governor.note("poem", source, 4, 0);
  std::uint32_t tries = 0;
  for (std::uint32_t i = 0; i < 14 * AcceptanceGovernor::retry_after; ++i) {
    const DraftPlan plan = governor.plan("poem", source, costs({.row = 0.3}));
    tries += plan.depth > 0 ? 1 : 0;
    EXPECT_EQ(plan.is_trial, plan.depth > 0);
    if (plan.depth > 0) governor.note("poem", source, plan.depth, 0);
  }
  EXPECT_EQ(tries, 3U);
  EXPECT_GT(governor.plan("code", source, costs({.row = 0.1})).depth, 0U);
}

TEST(AcceptanceGovernor, goes_on_soon_when_trials_succeed) {
  AcceptanceGovernor governor;
  for (int i = 0; i < 500; ++i) governor.note("text", source, 4, 0);
  std::uint32_t calls = 0;
  for (;; ++calls) {
    const DraftPlan plan = governor.plan("text", source, costs({.row = 0.1}));
    if (plan.depth > 0 && !plan.is_trial) break;
    if (plan.depth > 0) governor.note("text", source, plan.depth, plan.depth);
    ASSERT_LT(calls, 20 * AcceptanceGovernor::retry_after);
  }
}

TEST(AcceptanceGovernor, never_tries_what_cannot_pay) {
  AcceptanceGovernor governor;
  for (std::uint32_t i = 0; i < 4 * AcceptanceGovernor::longest_retry_after; ++i) {
    ASSERT_EQ(governor.plan("poem", source, costs({.row = 0.1, .token = 0.92})).depth, 0U);
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
    governor.plan(std::to_string(i), source, costs({.row = 0.1}));
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
  EXPECT_NEAR(cost.of_more_rows(1, 1), 0.2, 1e-6);
  EXPECT_NEAR(cost.of_more_rows(16, 2), 1.6, 1e-6);
  EXPECT_NEAR(cost.share(1), 50, 1e-6);
  EXPECT_NEAR(cost.share(4), 20, 1e-6);
  EXPECT_NEAR(cost.milliseconds(100), 1040, 1e-6);
}

// As measured: rows are multiplied in groups of four.
TEST(StepCost, knows_that_small_passes_are_no_line) {
  StepCost cost;
  for (int i = 0; i < 20; ++i) {
    cost.note(128, 600ms);
    cost.note(1, 15ms);
    cost.note(2, 28ms);
    cost.note(4, 31ms);
  }
  EXPECT_NEAR(cost.of_more_rows(1, 1), 13.0 / 15, 1e-6);
  EXPECT_NEAR(cost.of_more_rows(1, 3), 16.0 / 15, 1e-6);
  EXPECT_GT(cost.milliseconds(3), 28);
  EXPECT_LT(cost.milliseconds(3), 36);
}

TEST(StepCost, forgets_sizes_that_were_not_seen_for_long) {
  StepCost cost;
  cost.note(2, 500ms);
  for (int i = 0; i < 1100; ++i) {
    cost.note(1, 15ms);
    cost.note(128, 600ms);
  }
  EXPECT_LT(cost.milliseconds(2), 25);
}

TEST(StepCost, guesses_before_it_has_seen_passes_of_different_sizes) {
  StepCost cost;
  EXPECT_GT(cost.of_more_rows(1, 1), 0);
  EXPECT_EQ(cost.share(1), 0);
  for (int i = 0; i < 10; ++i) cost.note(4, 50ms);
  EXPECT_EQ(cost.per_row(), 0);
  EXPECT_NEAR(cost.milliseconds(4), 50, 1e-6);
}

// Whether a source's guess of each token of a text was right, as measured on greedy answers of a model of 0.35 B
// parameters (24 layers, random weights, 160 tokens).
constexpr std::string_view by_its_first_three_layers =
    "011111110101100111010010011011011011110010101001000101110011110011110110010110101111111100101111110110111111001000"
    "1111"
    "001011111011110010110101110011011111101011";
// The same of n-grams, on an answer of the embedded model to "Write a list of animals:"; "-": no guess.
constexpr std::string_view by_its_own_words =
    "---------0-------------------0------10-011111111111111111111111010100--11010-10-00--111010111110-------"
    "1111111111110---"
    "110------1110------111110-111110111111110";
constexpr std::string_view by_another_model =
    "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "0000"
    "000000000000000000000000000000000000000000";

// Milliseconds of that answer, several times over, relative to one token a step; `plan` is asked before each step.
template <class Plan, class Note>
double time_of(std::string_view trace, DraftCost cost, Plan plan, Note note) {
  constexpr std::size_t repetitions = 10;
  double time = 0;
  for (std::size_t at = 0; at < repetitions * trace.size();) {
    const std::uint32_t depth = trace[at % trace.size()] == '-' ? 0 : plan();
    std::uint32_t accepted = 0;
    while (accepted < depth && trace[(at + accepted) % trace.size()] == '1') ++accepted;
    time += 1 + (cost.row + cost.token) * depth;
    if (depth > 0) note(depth, accepted);
    at += accepted + 1;
  }
  return time / static_cast<double>(repetitions * trace.size());
}

double governed(std::string_view trace, DraftCost cost) {
  AcceptanceGovernor governor;
  return time_of(
      trace, cost, [&] { return governor.plan("", source, costs(cost)).depth; },
      [&](std::uint32_t drafted, std::uint32_t accepted) { governor.note("", source, drafted, accepted); });
}

double at_depth(std::string_view trace, DraftCost cost, std::uint32_t depth) {
  return time_of(trace, cost, [&] { return depth; }, [](std::uint32_t, std::uint32_t) {});
}

double at_best_depth(std::string_view trace, DraftCost cost) {
  double best = 1;
  for (std::uint32_t depth = 1; depth <= 8; ++depth) best = std::min(best, at_depth(trace, cost, depth));
  return best;
}

// Of a step of one token: what one more row and one guess of the first layers cost, measured on one core of an EPYC
// (0.32, 0.15), and less and more than that.
constexpr DraftCost measured_costs[] = {
    {.row = 0.32, .token = 0.15}, {.row = 0.05, .token = 0.15}, {.row = 0.05}, {.row = 0.5, .token = 0.3}};

TEST(AcceptanceGovernor, is_nearly_as_good_as_the_best_depth_for_a_text) {
  for (const DraftCost cost : measured_costs) {
    EXPECT_LT(governed(by_its_first_three_layers, cost), 1.05 * at_best_depth(by_its_first_three_layers, cost))
        << cost.row << " " << cost.token;
  }
  for (const double row : {0.05, 0.32}) {
    EXPECT_LT(governed(by_its_own_words, {.row = row}), 1.05 * at_best_depth(by_its_own_words, {.row = row})) << row;
  }
  EXPECT_LT(governed(by_its_first_three_layers, measured_costs[0]), 0.95) << "it pays";
  EXPECT_GT(at_depth(by_its_first_three_layers, measured_costs[0], 8), 1.5) << "and would not at a depth that is fixed";
}

TEST(AcceptanceGovernor, loses_next_to_nothing_where_drafting_does_not_pay) {
  for (const DraftCost cost : measured_costs) EXPECT_LT(governed(by_another_model, cost), 1.02);
  EXPECT_GT(at_depth(by_another_model, measured_costs[0], 4), 2.5);
}

TEST(AcceptanceGovernor, follows_a_text_that_changes) {
  const std::string changing = std::string(by_another_model) + std::string(by_its_first_three_layers);
  constexpr DraftCost cost{.row = 0.05, .token = 0.05};
  const double apart = (governed(by_another_model, cost) + governed(by_its_first_three_layers, cost)) / 2;
  EXPECT_LT(governed(changing, cost), 1.2 * apart);
}

}  // namespace
}  // namespace molly::engine
