#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "training/data/order.h"
#include "training/data/packing.h"
#include "training/random.h"

namespace molly::training {
namespace {

using testing::ElementsAre;

// Tokens first, first + 1, ...; from `answer` on they count.
Example example(std::int32_t first, std::size_t length, std::size_t answer) {
  Example out;
  for (std::size_t i = 0; i < length; ++i) {
    out.tokens.push_back(first + static_cast<std::int32_t>(i));
    out.counts.push_back(i >= answer ? 1 : 0);
  }
  return out;
}

TEST(TrainingPacking, examples_stand_back_to_back_with_targets_inside_their_own_segment) {
  const auto rows = pack(std::vector{example(10, 3, 2), example(20, 4, 1)}, 9).value();
  ASSERT_EQ(rows.size(), 1);
  EXPECT_THAT(rows[0].tokens, ElementsAre(20, 21, 22, 23, 10, 11, 12, 0, 0));
  EXPECT_THAT(rows[0].positions, ElementsAre(0, 1, 2, 3, 0, 1, 2, 0, 1));
  EXPECT_THAT(rows[0].segments, ElementsAre(0, 0, 0, 0, 1, 1, 1, 2, 2));
  EXPECT_THAT(rows[0].targets, ElementsAre(21, 22, 23, 0, 11, 12, 0, 0, 0));
  EXPECT_THAT(rows[0].counts, ElementsAre(1, 1, 1, 0, 0, 1, 0, 0, 0));
  EXPECT_THAT(rows[0].parts, ElementsAre(PackedPart{1, 0, 4}, PackedPart{0, 4, 3}));
}

TEST(TrainingPacking, the_first_row_with_room_takes_the_next_longest) {
  std::vector<Example> examples;
  for (const std::size_t length : {3, 5, 2, 6, 4}) examples.push_back(example(0, length, 1));
  const auto rows = pack(examples, 8).value();
  ASSERT_EQ(rows.size(), 3);
  EXPECT_THAT(rows[0].parts, ElementsAre(PackedPart{3, 0, 6}, PackedPart{2, 6, 2}));
  EXPECT_THAT(rows[1].parts, ElementsAre(PackedPart{1, 0, 5}, PackedPart{0, 5, 3}));
  EXPECT_THAT(rows[2].parts, ElementsAre(PackedPart{4, 0, 4}));
}

TEST(TrainingPacking, every_counted_token_is_a_target_once_whatever_the_lengths) {
  Random random(7);
  std::vector<Example> examples;
  std::size_t counted = 0;
  for (int i = 0; i < 500; ++i) {
    const std::size_t length = 2 + random.below(60);
    examples.push_back(example(static_cast<std::int32_t>(i * 100), length, 1 + random.below(20)));
    counted += examples.back().counted();
  }
  const auto rows = pack(examples, 64).value();
  EXPECT_EQ(rows, pack(examples, 64).value());
  std::set<std::uint32_t> seen;
  std::size_t targets = 0;
  for (const PackedRow& row : rows) {
    targets += row.counted();
    for (const PackedPart& part : row.parts) {
      EXPECT_TRUE(seen.insert(part.example).second);
      const auto begin = row.tokens.begin() + part.first;
      EXPECT_TRUE(std::equal(begin, begin + part.length, examples[part.example].tokens.begin()));
    }
    for (std::size_t i = 0; i < row.tokens.size(); ++i) {
      if (row.counts[i] != 0) {
        ASSERT_EQ(row.segments[i], row.segments[i + 1]);
        EXPECT_EQ(row.targets[i], row.tokens[i + 1]);
      }
    }
  }
  EXPECT_EQ(seen.size(), examples.size());
  EXPECT_EQ(targets, counted);
}

TEST(TrainingPacking, an_example_longer_than_a_row_is_refused) {
  const auto rows = pack(std::vector{example(0, 2, 1), example(0, 9, 1)}, 8);
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().message, "example 1 has 9 tokens; a row holds 1 to 8");
}

TEST(TrainingOrder, every_epoch_has_every_row_once_in_an_order_of_its_own) {
  EpochOrder order(50, {.seed = 3});
  std::vector<std::uint32_t> epochs[2];
  for (auto& epoch : epochs) {
    for (int i = 0; i < 50; ++i) epoch.push_back(order.next());
    EXPECT_EQ(std::set(epoch.begin(), epoch.end()).size(), 50);
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_EQ(order.state(), (OrderState{3, 2, 0}));
}

TEST(TrainingOrder, a_resumed_order_goes_on_where_the_other_stopped) {
  EpochOrder whole(7, {.seed = 11});
  for (int i = 0; i < 25; ++i) {
    EpochOrder resumed(7, whole.state());
    const std::uint32_t next = whole.next();
    EXPECT_EQ(resumed.next(), next);
    EXPECT_EQ(resumed.state(), whole.state());
  }
}

TEST(TrainingOrder, other_seeds_give_other_orders_and_numbers_are_those_of_the_paper) {
  EpochOrder one(20, {.seed = 1});
  EpochOrder two(20, {.seed = 2});
  std::vector<std::uint32_t> first;
  std::vector<std::uint32_t> second;
  for (int i = 0; i < 20; ++i) {
    first.push_back(one.next());
    second.push_back(two.next());
  }
  EXPECT_NE(first, second);
  Random random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317U);
  EXPECT_EQ(random.next(), 3203168211198807973U);
}

TEST(TrainingOrder, numbers_below_a_bound_are_spread_evenly) {
  Random random(5);
  std::vector<int> hits(6);
  for (int i = 0; i < 60'000; ++i) ++hits[random.below(6)];
  for (const int count : hits) EXPECT_NEAR(count, 10'000, 400);
}

}  // namespace
}  // namespace molly::training
