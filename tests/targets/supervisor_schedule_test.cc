#include "targets/supervisor_schedule.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace molly::targets {
namespace {

using namespace std::chrono_literals;

// The schedule with a clock of its own and children that do as they are told.
class Bench {
 public:
  explicit Bench(std::uint64_t budget, ScheduleOptions options = {}) : schedule(with_budget(options, budget)) {}

  TicketId ask(const std::string& model) {
    const auto ticket = schedule.request(model, now);
    EXPECT_TRUE(ticket) << ticket.error().message;
    decide();
    return ticket.value_or(0);
  }
  void ready(const std::string& model) {
    schedule.child_ready(model, generation.at(model), now);
    decide();
  }
  void gone(const std::string& model, const std::string& reason = "exited with code 1") {
    schedule.child_gone(model, generation.at(model), reason, now);
    decide();
  }
  void done(const std::string& model) {
    schedule.release(model, generation.at(model), now);
    decide();
  }
  void pass(std::chrono::milliseconds time) {
    now += time;
    decide();
  }
  void decide() {
    for (const auto& action : schedule.decide(now)) note(action);
    EXPECT_LE(schedule.memory_used(), schedule.memory_budget());
  }
  // What was decided since the last call: "start a, grant 1, stop b, fail 2".
  std::string take() { return std::exchange(log_, {}); }
  ModelState state(const std::string& model) const { return schedule.view(model).value().state; }

  TimePoint now = TimePoint() + 1h;
  ModelSchedule schedule;
  std::map<std::string, Generation> generation;
  Error last_error;

 private:
  static ScheduleOptions with_budget(ScheduleOptions options, std::uint64_t budget) {
    options.memory_budget = budget;
    return options;
  }
  void note(const Action& action) {
    if (const auto* start = std::get_if<StartModel>(&action)) {
      generation[start->model] = start->generation;
      say("start " + start->model);
    } else if (const auto* stop = std::get_if<StopModel>(&action)) {
      say("stop " + stop->model);
    } else if (const auto* grant = std::get_if<GrantTicket>(&action)) {
      say("grant " + std::to_string(grant->ticket));
    } else if (const auto* fail = std::get_if<FailTicket>(&action)) {
      last_error = fail->error;
      say("fail " + std::to_string(fail->ticket));
    }
  }
  void say(const std::string& text) { log_ += (log_.empty() ? "" : ", ") + text; }
  std::string log_;
};

TEST(ModelSchedule, one_start_serves_all_who_wait) {
  Bench bench(100);
  ASSERT_TRUE(bench.schedule.add("a", 60, 8));
  bench.ask("a");
  bench.ask("a");
  EXPECT_EQ(bench.take(), "start a");
  bench.ready("a");
  EXPECT_EQ(bench.take(), "grant 1, grant 2");
}

TEST(ModelSchedule, slots_bound_the_requests_in_flight) {
  Bench bench(100);
  ASSERT_TRUE(bench.schedule.add("a", 60, 2));
  for (int i = 0; i < 3; ++i) bench.ask("a");
  bench.ready("a");
  EXPECT_EQ(bench.take(), "start a, grant 1, grant 2");
  bench.done("a");
  EXPECT_EQ(bench.take(), "grant 3");
}

TEST(ModelSchedule, a_model_larger_than_the_budget_is_refused_at_once) {
  Bench bench(100);
  EXPECT_EQ(bench.schedule.add("huge", 101, 1).error().code, ErrorCode::invalid_request);
}

TEST(ModelSchedule, two_models_that_fit_are_loaded_side_by_side) {
  Bench bench(100);
  ASSERT_TRUE(bench.schedule.add("a", 50, 1));
  ASSERT_TRUE(bench.schedule.add("b", 50, 1));
  bench.ask("a");
  bench.ask("b");
  EXPECT_EQ(bench.take(), "start a, start b");
}

TEST(ModelSchedule, the_next_start_waits_for_the_last_exit) {
  Bench bench(100);
  ASSERT_TRUE(bench.schedule.add("a", 60, 1));
  ASSERT_TRUE(bench.schedule.add("b", 60, 1));
  bench.ask("a");
  bench.ready("a");
  bench.done("a");
  bench.take();
  bench.ask("b");
  EXPECT_EQ(bench.take(), "stop a");
  EXPECT_EQ(bench.state("a"), ModelState::draining);
  bench.gone("a");
  EXPECT_EQ(bench.take(), "start b");
}

TEST(ModelSchedule, requests_in_flight_are_never_swapped_out) {
  Bench bench(100);
  ASSERT_TRUE(bench.schedule.add("a", 60, 1));
  ASSERT_TRUE(bench.schedule.add("b", 60, 1));
  bench.ask("a");
  bench.ready("a");
  bench.take();
  bench.ask("b");
  bench.pass(1h);
  EXPECT_EQ(bench.take(), "") << "a still works, however long b has waited";
  bench.done("a");
  EXPECT_EQ(bench.take(), "stop a");
}

TEST(ModelSchedule, a_busy_model_takes_no_more_once_another_has_waited_its_patience) {
  Bench bench(100, {.patience = 2s});
  ASSERT_TRUE(bench.schedule.add("a", 60, 2));
  ASSERT_TRUE(bench.schedule.add("b", 60, 2));
  bench.ask("a");
  bench.ready("a");
  const auto first_b = bench.ask("b");
  bench.take();
  bench.pass(1s);
  const auto second_a = bench.ask("a");
  EXPECT_EQ(bench.take(), "grant " + std::to_string(second_a)) << "collated with the loaded model for now";
  ASSERT_TRUE(bench.schedule.next_decision(bench.now));
  bench.pass(1s);
  bench.done("a");
  const auto third_a = bench.ask("a");
  EXPECT_EQ(bench.take(), "") << "b has waited long enough";
  bench.done("a");
  bench.gone("a");
  EXPECT_EQ(bench.take(), "stop a, start b");
  bench.ready("b");
  EXPECT_EQ(bench.take(), "grant " + std::to_string(first_b));
  bench.pass(2s);
  bench.done("b");
  bench.gone("b");
  bench.ready("a");
  EXPECT_EQ(bench.take(), "stop b, start a, grant " + std::to_string(third_a));
}

TEST(ModelSchedule, a_burst_is_bounded_by_its_number_too) {
  Bench bench(100, {.patience = 1h, .burst = 3});
  ASSERT_TRUE(bench.schedule.add("a", 60, 8));
  ASSERT_TRUE(bench.schedule.add("b", 60, 8));
  bench.ask("a");
  bench.ready("a");
  bench.ask("b");
  bench.ask("a");
  bench.ask("a");
  bench.take();
  bench.ask("a");
  EXPECT_EQ(bench.state("a"), ModelState::draining);
}

TEST(ModelSchedule, the_longest_unused_idle_model_makes_room) {
  Bench bench(100);
  for (const char* model : {"a", "b", "c"}) ASSERT_TRUE(bench.schedule.add(model, 50, 1));
  for (const char* model : {"a", "b"}) {
    bench.ask(model);
    bench.ready(model);
    bench.done(model);
    bench.pass(1s);
  }
  bench.ask("a");
  bench.done("a");
  bench.take();
  bench.ask("c");
  EXPECT_EQ(bench.take(), "stop b");
}

TEST(ModelSchedule, nothing_is_unloaded_that_would_not_make_enough_room) {
  Bench bench(100, {.patience = 1h});
  ASSERT_TRUE(bench.schedule.add("idle", 20, 1));
  ASSERT_TRUE(bench.schedule.add("busy", 60, 1));
  ASSERT_TRUE(bench.schedule.add("wanted", 90, 1));
  for (const char* model : {"idle", "busy"}) {
    bench.ask(model);
    bench.ready(model);
  }
  bench.done("idle");
  bench.take();
  bench.ask("wanted");
  EXPECT_EQ(bench.take(), "");
}

TEST(ModelSchedule, room_being_made_for_the_oldest_is_not_given_to_a_later_one) {
  Bench bench(100, {.patience = 1h});
  ASSERT_TRUE(bench.schedule.add("busy", 60, 1));
  ASSERT_TRUE(bench.schedule.add("large", 90, 1));
  ASSERT_TRUE(bench.schedule.add("small", 30, 1));
  bench.ask("busy");
  bench.ready("busy");
  bench.take();
  bench.ask("large");
  bench.ask("small");
  EXPECT_EQ(bench.take(), "") << "small would fit beside busy, but large came first";
  bench.done("busy");
  bench.gone("busy");
  EXPECT_EQ(bench.take(), "stop busy, start large");
}

TEST(ModelSchedule, an_idle_model_is_unloaded_after_keep_alive) {
  Bench bench(100, {.keep_alive = 10min});
  ASSERT_TRUE(bench.schedule.add("a", 60, 1));
  bench.ask("a");
  bench.ready("a");
  bench.pass(1h);
  EXPECT_EQ(bench.state("a"), ModelState::ready) << "in use";
  bench.done("a");
  EXPECT_EQ(bench.schedule.next_decision(bench.now), bench.now + 10min);
  bench.take();
  bench.pass(10min);
  EXPECT_EQ(bench.take(), "stop a");
  bench.gone("a");
  EXPECT_EQ(bench.state("a"), ModelState::stopped);
  EXPECT_EQ(bench.schedule.view("a")->reason, "idle for 600 s");
  bench.ask("a");
  EXPECT_EQ(bench.take(), "start a");
}

TEST(ModelSchedule, a_failed_start_tells_who_waits_and_is_tried_again_with_growing_pauses) {
  Bench bench(100, {.first_backoff = 1s, .max_backoff = 3s});
  ASSERT_TRUE(bench.schedule.add("a", 60, 1));
  for (const auto pause : {0s, 1s, 2s, 3s, 3s, 3s, 3s, 3s, 3s, 3s}) {
    bench.ask("a");
    bench.take();
    bench.gone("a", "exited with code 1 while starting");
    EXPECT_EQ(bench.last_error.code, ErrorCode::unavailable);
    EXPECT_EQ(bench.state("a"), ModelState::failed);
    if (pause > 0s) {
      const auto refused = bench.schedule.request("a", bench.now);
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
      EXPECT_EQ(refused.error().retry_after, pause);
      EXPECT_TRUE(refused.error().message.contains("exited with code 1"));
    }
    bench.pass(pause);
  }
  bench.ask("a");
  bench.ready("a");
  EXPECT_EQ(bench.state("a"), ModelState::ready) << "ten failed starts never wedge it";
}

TEST(ModelSchedule, a_first_crash_while_serving_is_mended_at_once) {
  Bench bench(100);
  ASSERT_TRUE(bench.schedule.add("a", 60, 1));
  bench.ask("a");
  bench.ready("a");
  const auto waiting = bench.ask("a");
  bench.take();
  bench.gone("a", "killed by signal 9 (Killed)");
  EXPECT_EQ(bench.take(), "start a");
  bench.ready("a");
  EXPECT_EQ(bench.take(), "grant " + std::to_string(waiting));
}

TEST(ModelSchedule, a_late_word_from_an_earlier_run_changes_nothing) {
  Bench bench(100);
  ASSERT_TRUE(bench.schedule.add("a", 60, 1));
  bench.ask("a");
  bench.ready("a");
  const Generation old = bench.generation.at("a");
  bench.gone("a");
  bench.ask("a");
  bench.ready("a");
  bench.schedule.release("a", old, bench.now);
  bench.schedule.child_gone("a", old, "late", bench.now);
  EXPECT_EQ(bench.state("a"), ModelState::ready);
  EXPECT_EQ(bench.schedule.view("a")->leases, 1U);
}

TEST(ModelSchedule, the_queue_is_bounded) {
  Bench bench(100, {.max_waiting = 2});
  ASSERT_TRUE(bench.schedule.add("a", 60, 1));
  bench.ask("a");
  const auto second = bench.ask("a");
  const auto refused = bench.schedule.request("a", bench.now);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::overloaded);
  EXPECT_TRUE(refused.error().retry_after);
  bench.schedule.cancel(second);
  EXPECT_TRUE(bench.schedule.request("a", bench.now));
}

TEST(ModelSchedule, a_cancelled_wait_leaves_nothing_behind) {
  Bench bench(100);
  ASSERT_TRUE(bench.schedule.add("a", 60, 1));
  ASSERT_TRUE(bench.schedule.add("b", 60, 1));
  bench.ask("a");
  bench.ready("a");
  bench.schedule.cancel(bench.ask("b"));
  bench.take();
  bench.done("a");
  EXPECT_EQ(bench.take(), "") << "nobody wants b any more";
  EXPECT_EQ(bench.schedule.waiting(), 0U);
}

TEST(ModelSchedule, an_unload_waits_for_requests_but_not_for_ever) {
  Bench bench(100, {.drain_limit = 20s});
  ASSERT_TRUE(bench.schedule.add("a", 60, 1));
  bench.ask("a");
  bench.ready("a");
  bench.take();
  ASSERT_TRUE(bench.schedule.unload("a", "unloaded on request", bench.now));
  bench.decide();
  EXPECT_EQ(bench.take(), "");
  EXPECT_EQ(bench.schedule.next_decision(bench.now), bench.now + 20s);
  bench.pass(20s);
  EXPECT_EQ(bench.take(), "stop a");
}

TEST(ModelSchedule, a_load_starts_without_a_request_and_forgets_failures) {
  Bench bench(100, {.first_backoff = 1h, .max_backoff = 1h});
  ASSERT_TRUE(bench.schedule.add("a", 60, 1));
  for (int i = 0; i < 2; ++i) {
    bench.ask("a");
    bench.gone("a");
  }
  bench.take();
  ASSERT_TRUE(bench.schedule.load("a", bench.now));
  bench.decide();
  EXPECT_EQ(bench.take(), "start a");
}

TEST(ModelSchedule, a_removed_model_refuses_and_disappears_when_its_child_is_gone) {
  Bench bench(100);
  ASSERT_TRUE(bench.schedule.add("a", 60, 1));
  bench.ask("a");
  bench.take();
  bench.schedule.remove("a", bench.now);
  bench.decide();
  EXPECT_EQ(bench.take(), "fail 1, stop a");
  EXPECT_EQ(bench.schedule.request("a", bench.now).error().code, ErrorCode::not_found);
  bench.gone("a");
  EXPECT_TRUE(bench.schedule.view().empty());
  EXPECT_EQ(bench.schedule.memory_used(), 0U);
}

TEST(ModelSchedule, an_adopted_child_is_protected_while_the_one_before_drains) {
  Bench bench(100);
  ASSERT_TRUE(bench.schedule.add("a", 60, 1));
  ASSERT_TRUE(bench.schedule.add("b", 60, 1));
  const auto generation = bench.schedule.adopt("a", bench.now + 20s);
  ASSERT_TRUE(generation);
  bench.generation["a"] = *generation;
  EXPECT_FALSE(bench.schedule.adopt("a", bench.now)) << "only one child for each model";
  bench.ready("a");
  bench.ask("b");
  EXPECT_EQ(bench.take(), "");
  EXPECT_EQ(bench.schedule.next_decision(bench.now), bench.now + 2s);
  bench.pass(20s);
  EXPECT_EQ(bench.take(), "stop a");
}

// Whatever happens in whatever order: memory stays within the budget (checked at every step), and when the
// world becomes kind again everybody is answered.
TEST(ModelSchedule, random_events_never_wedge_it) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    Bench bench(100, {.max_waiting = 20, .burst = 4});
    const std::vector<std::string> models{"a", "b", "c", "d"};
    for (const auto& model : models)
      ASSERT_TRUE(bench.schedule.add(model, 20 + random() % 60, random() % 2 == 0 ? 1 : 3));
    std::set<TicketId> open;
    for (int step = 0; step < 300; ++step) {
      const std::string& model = models[random() % models.size()];
      const bool runs = bench.schedule.view(model)->generation != 0;
      switch (random() % 8) {
        case 0:
        case 1: {
          const auto ticket = bench.schedule.request(model, bench.now);
          if (ticket && random() % 4 == 0) bench.schedule.cancel(*ticket);
          break;
        }
        case 2:
          if (runs) bench.schedule.child_ready(model, bench.generation[model], bench.now);
          break;
        case 3:
          if (runs && random() % 3 == 0) bench.schedule.child_gone(model, bench.generation[model], "gone", bench.now);
          break;
        case 4: bench.schedule.release(model, bench.generation[model], bench.now); break;
        case 5: std::ignore = bench.schedule.load(model, bench.now); break;
        case 6:
          if (random() % 4 == 0) std::ignore = bench.schedule.unload(model, "x", bench.now);
          break;
        default: bench.now += std::chrono::milliseconds(random() % 1000);
      }
      bench.decide();
    }
    for (int round = 0; round < 200; ++round) {
      for (const auto& model : models) {
        const auto view = bench.schedule.view(model);
        if (view->state == ModelState::starting) bench.ready(model);
        if (view->state == ModelState::draining && view->leases == 0) bench.gone(model);
        for (std::uint32_t i = 0; i < view->leases; ++i) bench.done(model);
      }
      bench.pass(1s);
    }
    EXPECT_EQ(bench.schedule.waiting(), 0U) << "seed " << seed;
    for (const auto& model : models) EXPECT_EQ(bench.schedule.view(model)->leases, 0U) << "seed " << seed;
  }
}

}  // namespace
}  // namespace molly::targets
