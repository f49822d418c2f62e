#include "engine/schedule/model_drafter.h"

#include "schedule_world.h"

namespace molly::engine {
namespace {

using testing::IsEmpty;

class ModelDrafterTest : public testing::Test {
 protected:
  void make(std::uint32_t pages, ModelDrafterOptions options) {
    drafter_.reset();
    pool_ = std::make_unique<PagePool>(pages);
    model_ = std::make_unique<MadeUpModel>(*pool_, 4, 64);
    options.max_pages = pages;
    drafter_ = std::make_unique<ModelDrafter>(*model_, *pool_, cost_, options);
  }
  void SetUp() override { make(64, {}); }

  std::vector<Token> draft(GenerationId sequence, std::span<const Token> tokens, std::uint32_t depth) {
    const DraftWish wish{.sequence = sequence, .tokens = tokens, .depth = depth};
    return drafter_->draft({&wish, 1}).at(0);
  }

  std::shared_ptr<StepCost> cost_ = std::make_shared<StepCost>();
  std::unique_ptr<PagePool> pool_;
  std::unique_ptr<MadeUpModel> model_;
  std::unique_ptr<ModelDrafter> drafter_;
};

TEST_F(ModelDrafterTest, guesses_what_the_model_would_say) {
  EXPECT_EQ(draft(1, some_tokens(1, 9), 5), tokens_alone(some_tokens(1, 9), 5));
  EXPECT_EQ(model_->runs.size(), 5U);
}

TEST_F(ModelDrafterTest, computes_only_what_it_has_not_seen) {
  auto tokens = some_tokens(1, 20);
  const auto guesses = draft(1, tokens, 4);
  tokens.insert(tokens.end(), guesses.begin(), guesses.end());
  tokens.push_back(3);
  model_->runs.clear();
  EXPECT_EQ(draft(1, tokens, 1), tokens_alone(tokens, 1));
  ASSERT_EQ(model_->runs.size(), 1U);
  EXPECT_EQ(model_->runs[0].rows, 2U);
}

TEST_F(ModelDrafterTest, takes_back_what_was_rejected) {
  for (std::uint64_t round = 0; round < 30; ++round) {
    auto tokens = some_tokens(1, 10 + round);
    tokens.push_back(static_cast<Token>(round % made_up_vocabulary));
    EXPECT_EQ(draft(1, tokens, 3), tokens_alone(tokens, 3)) << round;
  }
}

TEST_F(ModelDrafterTest, drafts_for_all_in_the_same_passes) {
  std::vector<std::vector<Token>> texts;
  std::vector<DraftWish> wishes;
  texts.reserve(5);
  wishes.reserve(5);
  for (std::uint32_t i = 0; i < 5; ++i) {
    texts.push_back(some_tokens(i, 3 + i));
    wishes.push_back({.sequence = i, .tokens = texts[i], .depth = 1 + i});
  }
  const auto drafts = drafter_->draft(wishes);
  for (std::uint32_t i = 0; i < 5; ++i) EXPECT_EQ(drafts[i], tokens_alone(texts[i], 1 + i));
  ASSERT_EQ(model_->runs.size(), 5U);
  EXPECT_EQ(model_->runs[1].rows, 4U);
}

TEST_F(ModelDrafterTest, computes_a_long_prompt_in_pieces_while_others_draft) {
  make(64, {.max_rows = 10});
  const auto long_text = some_tokens(1, 45);
  auto short_text = some_tokens(2, 1);
  std::uint32_t calls = 0;
  std::vector<Token> guesses;
  for (; guesses.empty(); ++calls) {
    const std::vector<DraftWish> wishes{{.sequence = 2, .tokens = short_text, .depth = 1},
                                        {.sequence = 1, .tokens = long_text, .depth = 2}};
    const auto drafts = drafter_->draft(wishes);
    EXPECT_EQ(drafts[0], tokens_alone(short_text, 1));
    short_text.push_back(drafts[0][0]);
    guesses = drafts[1];
  }
  EXPECT_EQ(calls, 5U);
  EXPECT_EQ(guesses, tokens_alone(long_text, 2));
  for (const auto& run : model_->runs) EXPECT_LE(run.rows, 10U);
}

TEST_F(ModelDrafterTest, forgets_whoever_drafted_longest_ago_where_it_lacks_room) {
  make(8, {});
  for (int round = 0; round < 3; ++round) {
    for (GenerationId sequence = 0; sequence < 3; ++sequence) {
      const auto tokens = some_tokens(sequence, 12);
      EXPECT_EQ(draft(sequence, tokens, 4), tokens_alone(tokens, 4));
      EXPECT_LE(drafter_->pages(), 8U);
    }
  }
  EXPECT_THAT(draft(9, some_tokens(9, 40), 1), IsEmpty()) << "more than all the room";
}

TEST_F(ModelDrafterTest, takes_no_page_that_is_not_free_and_gives_back_all) {
  const auto taken = pool_->allocate(62, PageUse::kv);
  EXPECT_THAT(draft(1, some_tokens(1, 9), 2), IsEmpty());
  pool_->release(*taken);
  EXPECT_EQ(draft(1, some_tokens(1, 9), 2), tokens_alone(some_tokens(1, 9), 2));
  EXPECT_EQ(draft(2, some_tokens(2, 5), 2), tokens_alone(some_tokens(2, 5), 2));
  EXPECT_EQ(drafter_->give_back(), 3U);
  EXPECT_EQ(drafter_->give_back(), 2U);
  EXPECT_EQ(drafter_->give_back(), 0U);
  EXPECT_EQ(pool_->free(), pool_->size());
}

TEST_F(ModelDrafterTest, what_it_keeps_for_one_that_has_ended_is_freed) {
  draft(1, some_tokens(1, 9), 2);
  drafter_->forget(1);
  drafter_->forget(1);
  EXPECT_EQ(pool_->free(), pool_->size());
}

TEST_F(ModelDrafterTest, guesses_as_the_request_would_choose_and_leaves_its_chooser_alone) {
  CountingChooser chooser(77, true);
  const CountingChooser untouched(chooser);
  const auto tokens = some_tokens(1, 9);
  const DraftWish wish{.sequence = 1, .tokens = tokens, .depth = 6, .chooser = &chooser};
  auto expected = untouched.clone();
  EXPECT_EQ(drafter_->draft({&wish, 1}).at(0), tokens_alone(tokens, 6, 0, *expected));
  expected = untouched.clone();
  EXPECT_EQ(tokens_alone(tokens, 6, 0, chooser), tokens_alone(tokens, 6, 0, *expected));
}

TEST_F(ModelDrafterTest, a_pass_that_fails_gives_no_guess_and_harms_no_later_one) {
  model_->fails_next = true;
  EXPECT_THAT(draft(1, some_tokens(1, 9), 2), IsEmpty());
  EXPECT_EQ(draft(1, some_tokens(1, 9), 2), tokens_alone(some_tokens(1, 9), 2));
}

TEST_F(ModelDrafterTest, a_token_that_its_vocabulary_lacks_gives_no_guess) {
  EXPECT_THAT(draft(1, std::vector<Token>{1, 2, made_up_vocabulary}, 2), IsEmpty());
}

TEST_F(ModelDrafterTest, tells_what_it_costs_once_it_was_measured) {
  Scheduler::Clock::time_point now{};
  make(64, {.clock = [&] { return now += std::chrono::milliseconds(2); }});
  ASSERT_TRUE(drafter_->measure());
  EXPECT_GT(drafter_->milliseconds_per_token(1), 0);
  EXPECT_LT(drafter_->milliseconds_per_token(4), drafter_->milliseconds_per_token(1));
  EXPECT_EQ(pool_->free(), pool_->size());
}

TEST(ScheduleDraft, guesses_of_a_model_survive_preemption) {
  World world({.pages = 24});
  PagePool pool(64);
  MadeUpModel model(pool, 4, 64);
  auto drafter =
      std::make_unique<ModelDrafter>(model, pool, std::make_shared<StepCost>(), ModelDrafterOptions{.max_pages = 64});
  world.scheduler.set_model_drafter(std::move(drafter));
  auto request = world.request(some_tokens(1, 30), 30);
  request.drafting = Drafting::model;
  const auto sink = world.submit(std::move(request));
  while (sink->tokens.size() < 10) world.step();
  const auto rows_before = model.runs.size();
  auto urgent = world.request(some_tokens(2, 80), 4);
  urgent.priority = 1;
  world.submit(std::move(urgent));
  world.run();
  EXPECT_EQ(sink->tokens, tokens_alone(some_tokens(1, 30), 30));
  EXPECT_GT(sink->timings.preemptions, 0U);
  for (std::size_t run = rows_before; run < model.runs.size(); ++run) EXPECT_LE(model.runs[run].rows, 2U);
}

}  // namespace
}  // namespace molly::engine
