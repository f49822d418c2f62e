#include <cmath>

#include "schedule_world.h"

namespace molly::engine {
namespace {

using namespace std::chrono_literals;
using testing::FloatNear;
using testing::HasSubstr;

TEST(ScheduleRequest, ends_at_the_token_limit) {
  World world;
  const auto sink = world.submit(world.request(some_tokens(1, 6), 7));
  world.run();
  EXPECT_EQ(sink->reason, FinishReason::length);
  EXPECT_EQ(sink->tokens, tokens_alone(some_tokens(1, 6), 7));
}

TEST(ScheduleRequest, ends_at_an_end_token_and_when_the_sink_says_so) {
  World world;
  auto request = world.request(some_tokens(1, 6), 150);
  request.chooser = std::make_unique<CountingChooser>(1, true);
  const auto ended = world.submit(std::move(request));
  const auto stopped = world.submit(world.request(some_tokens(2, 6), 50));
  stopped->stop_at = 5;
  world.run();
  EXPECT_EQ(ended->reason, FinishReason::stop);
  EXPECT_EQ(ended->tokens.back(), 0);
  EXPECT_EQ(stopped->reason, FinishReason::stop);
  EXPECT_EQ(stopped->tokens.size(), 5U);
}

TEST(ScheduleRequest, ends_at_the_end_of_the_context) {
  WorldOptions options;
  options.schedule.context_length = 20;
  World world(options);
  const auto sink = world.submit(world.request(some_tokens(1, 6), 100));
  world.run();
  EXPECT_EQ(sink->reason, FinishReason::length);
  EXPECT_EQ(sink->tokens.size(), 14U);
}

TEST(ScheduleRequest, computes_only_the_prompt_when_no_token_is_asked_for) {
  World world;
  GenerationRequest request{.prompt = some_tokens(1, 9)};
  request.domain = "home";
  const auto sink = world.submit(std::move(request));
  world.run();
  EXPECT_EQ(sink->reason, FinishReason::length);
  EXPECT_TRUE(sink->tokens.empty());
  EXPECT_EQ(world.prefixes.pages(), 2U);
}

double expected_logprob(std::span<const Token> prompt, std::size_t position) {
  const auto logits = logits_after(cells_of(prompt.first(position), 0));
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  return static_cast<double>(logits[static_cast<std::size_t>(prompt[position])]) - std::log(sum);
}

TEST(ScheduleRequest, tells_log_probabilities_of_a_cached_prompt_computed_in_chunks) {
  World world;
  const auto prompt = some_tokens(1, 40);
  for (int i = 0; i < 2; ++i) {
    auto request = world.request(prompt, 1);
    request.domain = "home";
    request.prompt_logprobs = true;
    const auto sink = world.submit(std::move(request));
    world.run();
    ASSERT_EQ(sink->logprobs.size(), 39U);
    for (std::size_t position = 1; position < 40; ++position) {
      EXPECT_EQ(sink->logprobs[position - 1].token, prompt[position]);
      EXPECT_NEAR(static_cast<double>(sink->logprobs[position - 1].logprob), expected_logprob(prompt, position), 1e-4);
    }
  }
}

TEST(ScheduleRequest, pools_hidden_states) {
  World world;
  const auto prompt = some_tokens(1, 40);
  const auto cells = cells_of(prompt, 0);
  std::vector<double> mean(2, 0);
  for (const Cell& cell : cells) {
    for (std::size_t i = 0; i < 2; ++i) mean[i] += static_cast<double>(hidden_of(cell)[i]) / 40;
  }
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (const auto pooling : {Pooling::mean, Pooling::last}) {
    GenerationRequest request{.prompt = prompt};
    request.pooling = pooling;
    sinks.push_back(world.submit(std::move(request)));
  }
  world.run();
  EXPECT_THAT(sinks[0]->embedding, testing::ElementsAre(FloatNear(static_cast<float>(mean[0]), 1e-3F),
                                                        FloatNear(static_cast<float>(mean[1]), 1e-3F)));
  EXPECT_EQ(sinks[1]->embedding, hidden_of(cells.back()));
}

struct Refusal {
  const char* name;
  std::size_t prompt;
  Token first = 1;
  bool has_chooser = true;
  ErrorCode code;
  const char* message;
};

TEST(ScheduleRequest, what_cannot_be_done_is_refused) {
  const Refusal cases[] = {
      {.name = "empty", .prompt = 0, .code = ErrorCode::invalid_request, .message = "empty"},
      {.name = "token", .prompt = 3, .first = 99, .code = ErrorCode::invalid_request, .message = "vocabulary"},
      {.name = "chooser", .prompt = 3, .has_chooser = false, .code = ErrorCode::invalid_request, .message = "chooses"},
      {.name = "context", .prompt = 200, .code = ErrorCode::context_length_exceeded, .message = "200 tokens"},
      {.name = "pool", .prompt = 150, .code = ErrorCode::context_length_exceeded, .message = "holds 128"},
  };
  for (const auto& refusal : cases) {
    World world({.pages = 32});
    auto request = world.request(some_tokens(1, refusal.prompt), 1);
    if (!request.prompt.empty()) request.prompt[0] = refusal.first;
    if (!refusal.has_chooser) request.chooser.reset();
    const auto sink = world.submit(std::move(request));
    ASSERT_TRUE(sink->error) << refusal.name;
    EXPECT_EQ(sink->error->code, refusal.code) << refusal.name;
    EXPECT_THAT(sink->error->message, HasSubstr(refusal.message));
    EXPECT_EQ(world.scheduler.waiting(), 0U);
  }
}

TEST(ScheduleRequest, what_outgrows_the_pool_alone_says_so) {
  World world({.pages = 4});
  const auto sink = world.submit(world.request(some_tokens(1, 6), 100));
  world.run();
  ASSERT_TRUE(sink->error);
  EXPECT_EQ(sink->error->code, ErrorCode::context_length_exceeded);
  EXPECT_EQ(sink->tokens, tokens_alone(some_tokens(1, 6), 11));
  world.expect_nothing_leaked();
}

TEST(ScheduleRequest, adapters_that_do_not_fit_the_pool_together_are_refused) {
  World world({.pages = 8});
  auto request = world.request(some_tokens(1, 6), 2);
  request.adapters = {{.adapter = world.add({.number = 1, .pages = 5})},
                      {.adapter = world.add({.number = 2, .pages = 5})}};
  const auto sink = world.submit(std::move(request));
  const auto other = world.submit(world.request(some_tokens(2, 6), 2));
  world.run();
  ASSERT_TRUE(sink->error);
  EXPECT_EQ(sink->error->code, ErrorCode::overloaded);
  EXPECT_TRUE(other->reason);
  world.expect_nothing_leaked();
}

TEST(ScheduleRequest, unknown_and_broken_adapters_are_told_to_the_sink) {
  World world;
  auto unknown = world.request(some_tokens(1, 6), 2);
  unknown.adapters = {{.adapter = 77}};
  auto broken = world.request(some_tokens(1, 6), 2);
  broken.adapters = {{.adapter = *world.adapters.add("broken", "broken", "1")}};
  const auto first = world.submit(std::move(unknown));
  const auto second = world.submit(std::move(broken));
  world.run();
  ASSERT_TRUE(first->error && second->error);
  EXPECT_EQ(first->error->code, ErrorCode::not_found);
  EXPECT_EQ(second->error->code, ErrorCode::invalid_request);
}

TEST(ScheduleRequest, a_failing_backend_ends_only_the_sequences_of_its_step) {
  WorldOptions options;
  options.schedule.max_running = 2;
  World world(options);
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (std::uint64_t i = 0; i < 3; ++i) sinks.push_back(world.submit(world.request(some_tokens(i, 6), 5)));
  world.step();
  world.model.fails_next = true;
  world.run();
  EXPECT_EQ(sinks[0]->error->code, ErrorCode::internal);
  EXPECT_EQ(sinks[1]->error->code, ErrorCode::internal);
  EXPECT_EQ(sinks[2]->tokens, tokens_alone(some_tokens(2, 6), 5));
  EXPECT_EQ(world.scheduler.counters().failed, 2U);
  world.expect_nothing_leaked();
}

TEST(ScheduleRequest, tells_how_long_it_waited_and_worked) {
  World world;
  const auto sink = world.submit(world.request(some_tokens(1, 40), 5));
  world.now += 6ms;
  world.run();
  EXPECT_EQ(sink->timings.queued, 7ms);
  EXPECT_EQ(sink->timings.prefill, 2ms);
  EXPECT_EQ(sink->timings.decode, 4ms);
}

TEST(ScheduleRequest, what_is_left_at_the_end_is_cancelled) {
  auto world = std::make_unique<World>();
  const auto running = world->submit(world->request(some_tokens(1, 6), 50));
  world->step();
  const auto waiting = world->submit(world->request(some_tokens(1, 6), 50));
  world.reset();
  EXPECT_EQ(running->reason, FinishReason::cancelled);
  EXPECT_EQ(waiting->reason, FinishReason::cancelled);
}

TEST(ScheduleRequest, equal_mixtures_are_one_computation) {
  const auto mixture =
      canonical({{.adapter = 3, .weight = 0.5F}, {.adapter = 1}, {.adapter = 3}, {.adapter = 2, .weight = 0}});
  ASSERT_EQ(mixture.size(), 2U);
  EXPECT_EQ(mixture[0].adapter, 1U);
  EXPECT_EQ(mixture[1].weight, 1.5F);
  EXPECT_EQ(computation_of(mixture), "1*1;3*1.5;");
}

}  // namespace
}  // namespace molly::engine
