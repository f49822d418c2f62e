#include <map>

#include "schedule_world.h"

namespace molly::engine {
namespace {

using namespace std::chrono_literals;

TEST(ScheduleOrder, eight_simultaneous_requests_have_their_first_tokens_together) {
  for (const std::size_t prompt : {5U, 16U, 37U, 64U}) {
    World world({.pages = 300});
    std::vector<std::shared_ptr<RecordingSink>> sinks;
    sinks.reserve(8);
    for (std::uint64_t i = 0; i < 8; ++i) sinks.push_back(world.submit(world.request(some_tokens(i, prompt), 4)));
    world.run();
    std::vector<std::size_t> first_tokens;
    first_tokens.reserve(sinks.size());
    for (const auto& sink : sinks) first_tokens.push_back(sink->first_token_after);
    const auto [first, last] = std::ranges::minmax(first_tokens);
    EXPECT_LE(static_cast<double>(last), 1.5 * static_cast<double>(first)) << prompt;
  }
}

TEST(ScheduleOrder, prompts_that_fit_one_chunk_are_computed_in_one_step) {
  World world;
  for (std::uint64_t i = 0; i < 4; ++i) world.submit(world.request(some_tokens(i, 4), 1));
  world.run();
  ASSERT_EQ(world.model.runs.size(), 1U);
  EXPECT_EQ(world.model.runs[0].rows, 16U);
}

TEST(ScheduleOrder, decoding_goes_on_while_a_long_prompt_is_computed_in_chunks) {
  World world;
  const auto chat = world.submit(world.request(some_tokens(1, 4), 20));
  world.step();
  const auto long_prompt = world.submit(world.request(some_tokens(2, 160), 1));
  for (int i = 0; i < 10; ++i) world.step();
  EXPECT_EQ(chat->tokens.size(), 11U);
  EXPECT_EQ(long_prompt->tokens.size(), 1U);
  for (const auto& run : world.model.runs) EXPECT_LE(run.rows, 17U);
}

GenerationRequest shared_request(World& world, std::size_t shared, std::uint64_t own, std::size_t own_tokens) {
  auto prompt = some_tokens(1, shared);
  const auto rest = some_tokens(100 + own, own_tokens);
  prompt.insert(prompt.end(), rest.begin(), rest.end());
  auto request = world.request(std::move(prompt), 2);
  request.domain = "home";
  return request;
}

TEST(ScheduleOrder, a_prefix_that_eight_requests_share_is_computed_once) {
  World world({.pages = 100, .page_tokens = 64, .max_rows = 256, .schedule = {.context_length = 2048}});
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  sinks.reserve(8);
  for (std::uint64_t i = 0; i < 8; ++i) sinks.push_back(world.submit(shared_request(world, 1000, i, 16)));
  while (sinks.back()->tokens.empty()) ASSERT_TRUE(world.step());
  EXPECT_LE(world.rows(), 1.2 * 1016);
  for (const auto& sink : sinks) EXPECT_EQ(sink->first_token_after, sinks[0]->first_token_after);
  world.run();
  for (std::uint64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(sinks[i]->tokens, tokens_alone(shared_request(world, 1000, i, 16).prompt, 2));
  }
  world.expect_nothing_leaked();
}

TEST(ScheduleOrder, a_later_request_finds_the_full_pages_of_an_earlier_one) {
  World world;
  world.submit(shared_request(world, 22, 1, 3));
  world.run();
  const auto later = world.submit(shared_request(world, 22, 2, 3));
  world.run();
  EXPECT_EQ(later->timings.cached_tokens, 20U);
}

TEST(ScheduleOrder, a_prefix_that_had_to_be_computed_again_does_not_take_its_room_twice) {
  World world({.pages = 12});
  world.submit(shared_request(world, 12, 1, 0));
  world.run();
  auto request = shared_request(world, 12, 1, 12);
  const auto prompt = request.prompt;
  request.prompt_logprobs = true;  // of cached tokens there are none
  request.max_tokens = 24;         // in the end it needs every page
  const auto sink = world.submit(std::move(request));
  world.run();
  EXPECT_EQ(sink->tokens, tokens_alone(prompt, 24));
}

TEST(ScheduleOrder, private_requests_and_other_domains_share_nothing) {
  World world;
  for (const auto* domain : {"", "", "ann", "bob"}) {
    auto request = shared_request(world, 20, 1, 3);
    request.domain = domain;
    const auto sink = world.submit(std::move(request));
    world.run();
    EXPECT_EQ(sink->timings.cached_tokens, 0U);
  }
}

TEST(ScheduleOrder, who_waits_for_a_prefix_goes_on_alone_when_it_is_cancelled) {
  World world({.pages = 100});
  world.submit(shared_request(world, 100, 1, 4));
  const auto first = world.last_id;
  const auto second = world.submit(shared_request(world, 100, 2, 4));
  world.step();
  EXPECT_EQ(world.scheduler.running(), 1U);
  world.scheduler.cancel(first);
  world.run();
  EXPECT_EQ(second->tokens, tokens_alone(shared_request(world, 100, 2, 4).prompt, 2));
  EXPECT_EQ(second->timings.cached_tokens, 16U);
}

TEST(ScheduleOrder, a_sequence_whose_adapter_is_being_loaded_holds_up_nobody) {
  World world;
  auto request = world.request(some_tokens(1, 4), 3);
  request.adapters = {{.adapter = world.add({.number = 5}, "slow")}};
  const auto slow = world.submit(std::move(request));
  const auto quick = world.submit(world.request(some_tokens(2, 4), 3));
  for (int i = 0; i < 3; ++i) world.step();
  EXPECT_TRUE(quick->ended());
  EXPECT_TRUE(slow->tokens.empty());
  EXPECT_FALSE(world.step());
  world.open_gate();
  world.run();
  CountingChooser chooser(0);
  const auto content = with_adapter(0, MadeUpAdapter{.number = 5}.content(), 1);
  EXPECT_EQ(slow->tokens, tokens_alone(some_tokens(1, 4), 3, content, chooser));
}

TEST(ScheduleOrder, a_higher_priority_takes_the_place_of_a_lower) {
  WorldOptions options;
  options.schedule.max_running = 1;
  World world(options);
  const auto low = world.submit(world.request(some_tokens(1, 4), 30));
  for (int i = 0; i < 5; ++i) world.step();
  auto request = world.request(some_tokens(2, 4), 3);
  request.priority = 1;
  const auto high = world.submit(std::move(request));
  for (int i = 0; i < 3; ++i) world.step();
  EXPECT_TRUE(high->ended());
  EXPECT_EQ(low->tokens.size(), 5U);
  world.run();
  EXPECT_EQ(low->tokens, tokens_alone(some_tokens(1, 4), 30));
  EXPECT_EQ(low->timings.preemptions, 1U);
}

TEST(ScheduleOrder, a_member_with_one_request_does_not_wait_for_all_of_another) {
  WorldOptions options;
  options.schedule.max_running = 2;
  World world(options);
  std::vector<std::shared_ptr<RecordingSink>> greedy;
  for (std::uint64_t i = 0; i < 10; ++i) {
    auto request = world.request(some_tokens(i, 8), 8);
    request.member = "ann";
    greedy.push_back(world.submit(std::move(request)));
  }
  for (int i = 0; i < 4; ++i) world.step();
  auto request = world.request(some_tokens(50, 8), 8);
  request.member = "bob";
  const auto modest = world.submit(std::move(request));
  while (!modest->ended()) ASSERT_TRUE(world.step());
  const auto ended = std::ranges::count_if(greedy, [](const auto& sink) { return sink->ended(); });
  EXPECT_LE(ended, 4);
}

TEST(ScheduleOrder, members_that_ask_without_end_are_served_alike) {
  WorldOptions options;
  options.schedule.max_running = 3;
  World world(options);
  std::map<std::string, std::size_t> tokens{{"ann", 0}, {"bob", 0}};
  std::vector<std::pair<std::string, std::shared_ptr<RecordingSink>>> sinks;
  // Ann always has five requests waiting, Bob one.
  for (std::uint64_t step = 0; step < 600; ++step) {
    std::map<std::string, std::size_t> open;
    for (const auto& [member, sink] : sinks) open[member] += sink->ended() ? 0 : 1;
    for (const auto& [member, most] : {std::pair("ann", 6U), std::pair("bob", 3U)}) {
      if (open[member] >= most) continue;
      auto request = world.request(some_tokens(step, 6), 10);
      request.member = member;
      sinks.emplace_back(member, world.submit(std::move(request)));
    }
    world.step();
  }
  for (const auto& [member, sink] : sinks) tokens[member] += sink->tokens.size();
  const auto share = static_cast<double>(tokens["bob"]) / static_cast<double>(tokens["ann"]);
  EXPECT_NEAR(share, 1.0, 0.1);
}

TEST(ScheduleOrder, equal_requests_go_in_order_of_arrival) {
  WorldOptions options;
  options.schedule.max_running = 1;
  World world(options);
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  sinks.reserve(5);
  for (std::uint64_t i = 0; i < 5; ++i) sinks.push_back(world.submit(world.request(some_tokens(i, 4), 2)));
  world.run();
  EXPECT_TRUE(std::ranges::is_sorted(sinks, {}, [](const auto& sink) { return sink->first_token_after; }));
}

TEST(ScheduleOrder, the_last_in_order_gives_way_and_resumes_without_repeating_itself) {
  World world({.pages = 16});
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  sinks.reserve(3);
  for (std::uint64_t i = 0; i < 3; ++i) sinks.push_back(world.submit(world.request(some_tokens(i, 4), 40)));
  world.run();
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(sinks[i]->tokens, tokens_alone(some_tokens(i, 4), 40));
  EXPECT_GT(world.scheduler.counters().preemptions, 0U);
  EXPECT_LT(world.scheduler.counters().preemptions, 6U);
  world.expect_nothing_leaked();
}

TEST(ScheduleOrder, a_large_prompt_is_not_overtaken_for_ever_by_small_ones) {
  World world({.pages = 16});
  world.submit(world.request(some_tokens(0, 4), 20));
  world.step();
  const auto large = world.submit(world.request(some_tokens(1, 56), 2));
  for (std::uint64_t i = 2; i < 100 && !large->ended(); ++i) {
    world.submit(world.request(some_tokens(i, 4), 20));
    world.step();
  }
  EXPECT_TRUE(large->ended());
}

TEST(ScheduleOrder, deadlines_end_waiting_and_running_requests) {
  WorldOptions options;
  options.schedule.max_running = 1;
  World world(options);
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (std::uint64_t i = 0; i < 2; ++i) {
    auto request = world.request(some_tokens(i, 4), 50);
    request.deadline = world.now + 10ms;
    sinks.push_back(world.submit(std::move(request)));
  }
  EXPECT_EQ(world.scheduler.next_deadline(), world.now + 10ms);
  for (int i = 0; i < 12; ++i) world.step();
  EXPECT_EQ(sinks[0]->tokens.size(), 9U);
  for (const auto& sink : sinks) {
    ASSERT_TRUE(sink->error);
    EXPECT_EQ(sink->error->code, ErrorCode::timeout);
  }
  world.expect_nothing_leaked();
}

TEST(ScheduleOrder, cancelled_requests_end_at_once) {
  WorldOptions options;
  options.schedule.max_running = 1;
  World world(options);
  const auto running = world.submit(world.request(some_tokens(1, 4), 50));
  const auto running_id = world.last_id;
  const auto waiting = world.submit(world.request(some_tokens(2, 4), 50));
  world.step();
  world.scheduler.cancel(world.last_id);
  world.scheduler.cancel(running_id);
  world.scheduler.cancel(running_id);
  EXPECT_EQ(running->reason, FinishReason::cancelled);
  EXPECT_EQ(waiting->reason, FinishReason::cancelled);
  EXPECT_FALSE(world.step());
  world.expect_nothing_leaked();
}

TEST(ScheduleOrder, more_than_may_wait_are_told_when_to_come_again) {
  WorldOptions options;
  options.schedule.max_waiting = 2;
  World world(options);
  for (std::uint64_t i = 0; i < 2; ++i) world.submit(world.request(some_tokens(i, 4), 2));
  const auto refused = world.submit(world.request(some_tokens(3, 4), 2));
  ASSERT_TRUE(refused->error);
  EXPECT_EQ(refused->error->code, ErrorCode::overloaded);
  EXPECT_GT(refused->error->retry_after, 0ms);
}

TEST(ScheduleOrder, many_adapters_take_turns_in_a_pool_for_two) {
  World world({.pages = 14});
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  std::vector<MadeUpAdapter> adapters;
  for (std::uint32_t i = 1; i <= 8; ++i) {
    adapters.push_back({.number = i, .pages = 4});
    auto request = world.request(some_tokens(i, 6), 6);
    request.adapters = {{.adapter = world.add(adapters.back())}};
    sinks.push_back(world.submit(std::move(request)));
  }
  world.run();
  for (std::uint32_t i = 1; i <= 8; ++i) {
    CountingChooser chooser(0);
    EXPECT_EQ(sinks[i - 1]->tokens,
              tokens_alone(some_tokens(i, 6), 6, with_adapter(0, adapters[i - 1].content(), 1), chooser));
  }
  world.expect_nothing_leaked();
}

}  // namespace
}  // namespace molly::engine
