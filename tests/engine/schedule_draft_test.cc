#include "engine/schedule/step_cost.h"
#include "schedule_world.h"

namespace molly::engine {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(NgramDrafter, continues_as_the_longest_match_did) {
  NgramDrafter drafter;
  const std::vector<Token> tokens{9, 2, 3, 7, 1, 2, 3, 8, 5, 1, 2, 3};
  EXPECT_THAT(drafter.draft(tokens, 2), ElementsAre(8, 5));
}

TEST(NgramDrafter, prefers_the_latest_match) {
  NgramDrafter drafter;
  const std::vector<Token> tokens{1, 2, 5, 1, 2, 6, 1, 2};
  EXPECT_THAT(drafter.draft(tokens, 1), ElementsAre(6));
}

TEST(NgramDrafter, repeats_what_repeats_itself) {
  NgramDrafter drafter;
  const std::vector<Token> tokens{4, 1, 2, 1, 2, 1, 2};
  EXPECT_THAT(drafter.draft(tokens, 5), ElementsAre(1, 2, 1, 2, 1));
}

TEST(NgramDrafter, has_no_idea_of_the_new) {
  NgramDrafter drafter;
  EXPECT_THAT(drafter.draft(std::vector<Token>{1, 2, 3, 4, 5}, 4), IsEmpty());
  EXPECT_THAT(drafter.draft(std::vector<Token>{1}, 4), IsEmpty());
}

TEST(AcceptanceGovernor, drafts_deeper_the_more_is_accepted) {
  AcceptanceGovernor governor;
  std::uint32_t depth = governor.depth("code", 0.1);
  EXPECT_GT(depth, 0U);
  for (int i = 0; i < 50; ++i) governor.note("code", 4, 4);
  EXPECT_GT(governor.depth("code", 0.1), depth);
  EXPECT_EQ(governor.depth("code", 0), 8U);
}

TEST(AcceptanceGovernor, stops_where_it_does_not_pay_and_tries_again_later) {
  AcceptanceGovernor governor;
  for (int i = 0; i < 50; ++i) governor.note("poem", 4, 0);
  std::uint32_t tries = 0;
  for (std::uint32_t i = 0; i < 2 * AcceptanceGovernor::retry_after; ++i) tries += governor.depth("poem", 0.3);
  EXPECT_EQ(tries, 2U);
  EXPECT_GT(governor.depth("code", 0.1), 0U);
}

TEST(AcceptanceGovernor, counts_only_what_was_put_to_the_test) {
  AcceptanceGovernor governor;
  for (int i = 0; i < 500; ++i) governor.note("half", 8, 1);
  EXPECT_NEAR(governor.acceptance("half"), 0.5, 0.01);
}

TEST(AcceptanceGovernor, forgets_rather_than_grows_without_end) {
  AcceptanceGovernor governor;
  governor.note("first", 100, 0);
  for (std::size_t i = 0; i < AcceptanceGovernor::max_kinds + 1; ++i) governor.depth(std::to_string(i), 0.1);
  EXPECT_EQ(governor.acceptance("first"), 0.5);
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
}

TEST(StepCost, guesses_before_it_has_seen_passes_of_different_sizes) {
  StepCost cost;
  EXPECT_GT(cost.relative_per_row(1), 0);
  for (int i = 0; i < 10; ++i) cost.note(4, 50ms);
  EXPECT_EQ(cost.per_row(), 0);
}

class PerfectDrafter : public Drafter {
 public:
  std::vector<Token> draft(std::span<const Token> tokens, std::uint32_t depth) override {
    return tokens_alone({tokens.begin(), tokens.end()}, depth);
  }
};

class StrangeDrafter : public Drafter {
 public:
  std::vector<Token> draft(std::span<const Token>, std::uint32_t) override {
    return {1, 99, -1, 5, 5, 5, 5, 5, 5, 5, 5};
  }
};

TEST(ScheduleDraft, right_guesses_save_steps_and_change_nothing) {
  World world;
  world.scheduler.set_model_drafter(std::make_unique<PerfectDrafter>());
  auto request = world.request(some_tokens(1, 6), 60);
  request.drafting = Drafting::model;
  const auto sink = world.submit(std::move(request));
  world.run();
  EXPECT_EQ(sink->tokens, tokens_alone(some_tokens(1, 6), 60));
  EXPECT_LT(world.model.runs.size(), 30U);
  EXPECT_EQ(sink->timings.accepted_tokens, sink->timings.drafted_tokens);
  EXPECT_GT(sink->timings.accepted_tokens, 30U);
}

TEST(ScheduleDraft, wrong_guesses_change_nothing_and_soon_stop) {
  World world;
  world.scheduler.set_model_drafter(std::make_unique<StrangeDrafter>());
  auto request = world.request(some_tokens(1, 6), 150);
  request.drafting = Drafting::model;
  const auto sink = world.submit(std::move(request));
  world.run();
  EXPECT_EQ(sink->tokens, tokens_alone(some_tokens(1, 6), 150));
  EXPECT_LT(sink->timings.drafted_tokens, 100U);
}

TEST(ScheduleDraft, without_a_model_to_draft_nothing_is_drafted) {
  World world;
  auto request = world.request(some_tokens(1, 6), 20);
  request.drafting = Drafting::model;
  const auto sink = world.submit(std::move(request));
  world.run();
  EXPECT_EQ(sink->timings.drafted_tokens, 0U);
  EXPECT_EQ(sink->tokens.size(), 20U);
}

TEST(ScheduleDraft, guesses_never_take_pages_from_others) {
  World world({.pages = 8});
  world.scheduler.set_model_drafter(std::make_unique<PerfectDrafter>());
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (std::uint64_t i = 0; i < 2; ++i) {
    auto request = world.request(some_tokens(i, 4), 12);
    request.drafting = Drafting::model;
    sinks.push_back(world.submit(std::move(request)));
  }
  world.run();
  for (std::uint64_t i = 0; i < 2; ++i) EXPECT_EQ(sinks[i]->tokens, tokens_alone(some_tokens(i, 4), 12));
  EXPECT_EQ(world.scheduler.counters().preemptions, 0U);
}

}  // namespace
}  // namespace molly::engine
