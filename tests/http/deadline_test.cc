#include "http/deadline.h"

#include <gtest/gtest.h>

namespace molly::http {
namespace {

using namespace std::chrono_literals;

class DeadlineTest : public ::testing::Test {
 protected:
  boost::asio::io_context context_{1};
};

TEST_F(DeadlineTest, never_fires_early_and_lets_the_context_end) {
  const auto start = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point fired;
  Deadline deadline(context_, [&] { fired = std::chrono::steady_clock::now(); });
  deadline.arm(60ms);
  context_.run();
  EXPECT_GE(fired - start, 60ms);
  EXPECT_FALSE(deadline.armed());
}

TEST_F(DeadlineTest, can_be_moved_and_disarmed) {
  int moved = 0;
  int disarmed = 0;
  Deadline later(context_, [&] { ++moved; });
  Deadline never(context_, [&] { ++disarmed; });
  later.arm(1ms);
  later.arm(120ms);
  later.extend(30ms);
  never.arm(1ms);
  never.disarm();
  const auto start = std::chrono::steady_clock::now();
  context_.run();
  EXPECT_GE(std::chrono::steady_clock::now() - start, 150ms);
  EXPECT_EQ(moved, 1);
  EXPECT_EQ(disarmed, 0);
}

TEST_F(DeadlineTest, a_callback_may_destroy_and_arm_deadlines) {
  int fired = 0;
  std::vector<std::unique_ptr<Deadline>> deadlines;
  for (int i = 0; i < 10; ++i) {
    deadlines.push_back(std::make_unique<Deadline>(context_, [&] {
      ++fired;
      deadlines.clear();
      deadlines.push_back(std::make_unique<Deadline>(context_, [&] { fired += 100; }));
      deadlines.back()->arm(1ms);
    }));
    deadlines.back()->arm(1ms);
  }
  context_.run();
  EXPECT_EQ(fired, 101);
}

}  // namespace
}  // namespace molly::http
