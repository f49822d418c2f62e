#include "targets/breaker.h"

#include <gtest/gtest.h>

namespace molly::targets {
namespace {

using namespace std::chrono_literals;
using Clock = Breaker::Clock;

const Clock::time_point start{};
const Breaker::Settings quick{.threshold = 3, .first_open = 100ms, .longest_open = 300ms};

void fail(Breaker& breaker, int times, Clock::time_point now) {
  for (int i = 0; i < times; ++i) breaker.failed(now);
}

TEST(Breaker, stays_closed_below_the_threshold) {
  Breaker breaker(quick);
  fail(breaker, 2, start);
  EXPECT_TRUE(breaker.try_pass(start));
  breaker.succeeded();
  fail(breaker, 2, start);
  EXPECT_EQ(breaker.state(start), Breaker::State::closed);
}

TEST(Breaker, opens_at_the_threshold_and_says_for_how_long) {
  Breaker breaker(quick);
  fail(breaker, 3, start);
  EXPECT_FALSE(breaker.try_pass(start + 99ms));
  EXPECT_EQ(breaker.opens_for(start + 40ms), 60ms);
}

TEST(Breaker, lets_one_probe_through_and_closes_on_its_success) {
  Breaker breaker(quick);
  fail(breaker, 3, start);
  EXPECT_TRUE(breaker.try_pass(start + 100ms));
  EXPECT_FALSE(breaker.try_pass(start + 100ms));
  breaker.succeeded();
  EXPECT_TRUE(breaker.try_pass(start + 100ms));
}

TEST(Breaker, doubles_its_pause_up_to_the_longest_while_probes_fail) {
  Breaker breaker(quick);
  fail(breaker, 3, start);
  Clock::time_point now = start;
  for (const auto pause : {100ms, 200ms, 300ms, 300ms}) {
    EXPECT_EQ(breaker.opens_for(now), pause);
    now += pause;
    ASSERT_TRUE(breaker.try_pass(now));
    breaker.failed(now);
  }
}

TEST(Breaker, an_abandoned_probe_frees_its_place) {
  Breaker breaker(quick);
  fail(breaker, 3, start);
  ASSERT_TRUE(breaker.try_pass(start + 100ms));
  breaker.abandoned();
  EXPECT_TRUE(breaker.try_pass(start + 100ms));
}

}  // namespace
}  // namespace molly::targets
