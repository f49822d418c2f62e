#include "engine/schedule/ngram_drafter.h"
#include "engine/schedule/pushed_drafts.h"
#include "schedule_world.h"

namespace molly::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<Token> draft(DraftSource& source, std::span<const Token> tokens, std::uint32_t depth,
                         std::string_view channel = "") {
  const DraftWish wish{.tokens = tokens, .depth = depth, .channel = channel};
  return source.draft({&wish, 1}).at(0);
}

TEST(NgramDrafter, continues_as_the_longest_match_did) {
  NgramDrafter drafter;
  const std::vector<Token> tokens{9, 2, 3, 7, 1, 2, 3, 8, 5, 1, 2, 3};
  EXPECT_THAT(draft(drafter, tokens, 2), ElementsAre(8, 5));
}

TEST(NgramDrafter, prefers_the_latest_match) {
  NgramDrafter drafter;
  const std::vector<Token> tokens{1, 2, 5, 1, 2, 6, 1, 2};
  EXPECT_THAT(draft(drafter, tokens, 1), ElementsAre(6));
}

TEST(NgramDrafter, repeats_what_repeats_itself) {
  NgramDrafter drafter;
  const std::vector<Token> tokens{4, 1, 2, 1, 2, 1, 2};
  EXPECT_THAT(draft(drafter, tokens, 5), ElementsAre(1, 2, 1, 2, 1));
}

TEST(NgramDrafter, has_no_idea_of_the_new) {
  NgramDrafter drafter;
  EXPECT_THAT(draft(drafter, std::vector<Token>{1, 2, 3, 4, 5}, 4), IsEmpty());
  EXPECT_THAT(draft(drafter, std::vector<Token>{1}, 4), IsEmpty());
}

class PushedDraftsTest : public testing::Test {
 protected:
  std::vector<Token> after(std::span<const Token> tokens, std::uint32_t depth = 8) {
    return draft(drafts_, tokens, depth, "c");
  }
  void push(std::uint32_t position, const std::vector<Token>& tokens) { drafts_.push("c", position, tokens); }

  PushedDrafts drafts_;
};

TEST_F(PushedDraftsTest, are_used_as_far_as_they_agree_with_what_was_generated_meanwhile) {
  drafts_.open("c", 1);
  push(2, {7, 8, 9, 5});
  EXPECT_THAT(after(std::vector<Token>{1, 1, 7, 8}), ElementsAre(9, 5));
  EXPECT_THAT(after(std::vector<Token>{1, 1, 7, 8, 9}, 1), ElementsAre(5));
  push(6, {3, 3});
  EXPECT_THAT(after(std::vector<Token>{1, 1, 7, 8, 9, 5}), ElementsAre(3, 3));
  EXPECT_THAT(after(std::vector<Token>{1, 1, 7, 8, 9, 5, 4}), IsEmpty());
  EXPECT_THAT(after(std::vector<Token>{1, 1, 7, 8, 9, 5, 3}), IsEmpty());
}

TEST_F(PushedDraftsTest, replace_what_was_pushed_for_the_same_place_and_what_they_do_not_join) {
  drafts_.open("c", 1);
  push(2, {7, 8, 9});
  push(3, {4});
  EXPECT_THAT(after(std::vector<Token>{1, 1}), ElementsAre(7, 4));
  push(9, {6});
  EXPECT_THAT(after(std::vector<Token>{1, 1}), IsEmpty());
  EXPECT_THAT(after(std::vector<Token>(9, 1)), ElementsAre(6));
}

TEST_F(PushedDraftsTest, belong_to_one_open_sequence_and_are_bounded) {
  push(0, {1});
  EXPECT_TRUE(drafts_.open("c", 1));
  EXPECT_FALSE(drafts_.open("c", 2));
  EXPECT_THAT(after({}), IsEmpty());
  push(0, std::vector<Token>(10'000, 3));
  EXPECT_EQ(after({}, 20'000).size(), PushedDrafts::most_tokens);
  push(0, {1});
  drafts_.forget(1);
  EXPECT_THAT(after({}), IsEmpty());
  EXPECT_TRUE(drafts_.open("c", 2));
  EXPECT_THAT(after({}), IsEmpty());
}

class PerfectDrafter : public DraftSource {
 public:
  std::vector<std::vector<Token>> draft(std::span<const DraftWish> wishes) override {
    std::vector<std::vector<Token>> drafts;
    for (const DraftWish& wish : wishes) {
      drafts.push_back(tokens_alone({wish.tokens.begin(), wish.tokens.end()}, wish.depth));
    }
    return drafts;
  }
};

class StrangeDrafter : public DraftSource {
 public:
  std::vector<std::vector<Token>> draft(std::span<const DraftWish> wishes) override {
    return {wishes.size(), {1, 99, -1, 5, 5, 5, 5, 5, 5, 5, 5}};
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
  const DraftCounts counts = sink->timings.drafts[DraftKind::model];
  EXPECT_EQ(counts.accepted, counts.drafted);
  EXPECT_GT(counts.accepted, 30U);
  EXPECT_EQ(world.scheduler.counters().drafts[DraftKind::model].accepted, counts.accepted);
}

TEST(ScheduleDraft, wrong_guesses_change_nothing_and_soon_stop) {
  World world;
  world.scheduler.set_model_drafter(std::make_unique<StrangeDrafter>());
  auto request = world.request(some_tokens(1, 6), 150);
  request.drafting = Drafting::model;
  const auto sink = world.submit(std::move(request));
  world.run();
  EXPECT_EQ(sink->tokens, tokens_alone(some_tokens(1, 6), 150));
  EXPECT_LT(total(sink->timings.drafts).drafted, 100U);
}

TEST(ScheduleDraft, without_a_model_to_draft_nothing_is_drafted) {
  World world;
  auto request = world.request(some_tokens(1, 6), 20);
  request.drafting = Drafting::model;
  const auto sink = world.submit(std::move(request));
  world.run();
  EXPECT_EQ(total(sink->timings.drafts).drafted, 0U);
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

class Clueless : public DraftSource {
 public:
  std::vector<std::vector<Token>> draft(std::span<const DraftWish> wishes) override {
    ++asked;
    return std::vector<std::vector<Token>>(wishes.size());
  }
  int asked = 0;
};

TEST(ScheduleDraft, where_one_source_has_no_idea_another_is_asked) {
  World world;
  auto model = std::make_unique<Clueless>();
  const Clueless& clueless = *model;
  world.scheduler.set_model_drafter(std::move(model));
  auto request = world.request({1, 2, 3, 1, 2, 3, 1, 2, 3}, 100);
  request.drafting = Drafting::automatic;
  const auto sink = world.submit(std::move(request));
  world.run();
  EXPECT_GT(clueless.asked, 0);
  EXPECT_GT(sink->timings.drafts[DraftKind::ngram].accepted, 0U);
  EXPECT_EQ(sink->timings.drafts[DraftKind::model].drafted, 0U);
}

TEST(ScheduleDraft, the_best_source_is_used_when_any_may_be) {
  World world;
  world.scheduler.set_model_drafter(std::make_unique<PerfectDrafter>());
  auto request = world.request(some_tokens(1, 6), 150);
  request.drafting = Drafting::automatic;
  const auto sink = world.submit(std::move(request));
  world.run();
  EXPECT_EQ(sink->tokens, tokens_alone(some_tokens(1, 6), 150));
  EXPECT_GT(sink->timings.drafts[DraftKind::model].accepted, sink->timings.drafts[DraftKind::ngram].drafted);
}

TEST(ScheduleDraft, the_base_guesses_for_requests_with_adapters) {
  World world({.pages = 200});
  const MadeUpAdapter adapter{.number = 7};
  const auto id = world.add(adapter);
  const auto ask = [&](std::uint64_t seed, std::vector<AdapterWeight> adapters) {
    auto request = world.request(some_tokens(seed, 6), 60);
    request.adapters = std::move(adapters);
    request.drafting = Drafting::base;
    request.task_class = std::to_string(seed);
    return world.submit(std::move(request));
  };
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  sinks.reserve(6);
  for (std::uint64_t seed = 0; seed < 6; ++seed) sinks.push_back(ask(seed, {{.adapter = id}}));
  const auto without = ask(9, {});
  world.run();
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    CountingChooser chooser(0);
    EXPECT_EQ(sinks[seed]->tokens,
              tokens_alone(some_tokens(seed, 6), 60, with_adapter(0, adapter.content(), 1), chooser));
  }
  EXPECT_GT(world.scheduler.counters().drafts[DraftKind::base].accepted, 20U);
  EXPECT_EQ(total(without->timings.drafts).drafted, 0U);
  world.expect_nothing_leaked();
}

TEST(ScheduleDraft, the_bases_guesses_give_their_pages_back_to_those_who_need_them) {
  World world({.pages = 32});
  const MadeUpAdapter adapter{.number = 7};
  const auto id = world.add(adapter);
  const auto with_base = [&](std::uint64_t seed, std::uint32_t tokens) {
    auto request = world.request(some_tokens(seed, 6), tokens);
    request.adapters = {{.adapter = id}};
    request.drafting = Drafting::base;
    return world.submit(std::move(request));
  };
  const auto first = with_base(1, 30);
  while (first->tokens.size() < 12) {
    if (!world.step()) world.await_load();
  }
  const auto large = world.submit(world.request(some_tokens(2, 80), 4));
  world.run();
  EXPECT_EQ(large->tokens, tokens_alone(some_tokens(2, 80), 4));
  EXPECT_EQ(first->tokens.size(), 30U);
  EXPECT_EQ(world.scheduler.counters().preemptions, 0U);
  world.expect_nothing_leaked();
}

TEST(ScheduleDraft, guesses_may_come_from_outside_and_late) {
  World world;
  const auto expected = tokens_alone(some_tokens(1, 6), 60);
  auto request = world.request(some_tokens(1, 6), 60);
  request.drafting = Drafting::pushed;
  request.draft_channel = "c";
  const auto sink = world.submit(std::move(request));
  while (sink->tokens.size() < 3) world.step();
  world.scheduler.push_draft("c", 8, std::span(expected).subspan(2, 40));
  const auto before = world.model.runs.size();
  world.run();
  EXPECT_EQ(sink->tokens, expected);
  EXPECT_GT(sink->timings.drafts[DraftKind::pushed].accepted, 30U);
  EXPECT_LT(world.model.runs.size() - before, 35U);
}

TEST(ScheduleDraft, a_channel_is_for_one_request_at_a_time) {
  World world;
  const auto with_channel = [&] {
    auto request = world.request(some_tokens(1, 6), 5);
    request.draft_channel = "c";
    return world.submit(std::move(request));
  };
  const auto first = with_channel();
  EXPECT_EQ(with_channel()->error->code, ErrorCode::conflict);
  world.run();
  EXPECT_EQ(with_channel()->error, std::nullopt);
}

}  // namespace
}  // namespace molly::engine
