#include "base/text.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace molly::base {
namespace {

using std::chrono::milliseconds;

TEST(Text, counts_edits_and_swaps) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("listen", "lsiten"), 1U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(Text, names_the_nearest_only_when_it_is_near) {
  const std::vector<std::string> names{"listen", "threads", "socket"};
  EXPECT_EQ(nearest("thread", names), "threads");
  EXPECT_EQ(nearest("lisetn", names), "listen");
  EXPECT_EQ(nearest("banana", names), std::nullopt);
  EXPECT_EQ(nearest(std::string(10'000, 'x'), names), std::nullopt);
}

TEST(Text, reads_sizes) {
  EXPECT_EQ(parse_size("64KiB"), 65536U);
  EXPECT_EQ(parse_size("32 MiB"), 32U << 20);
  EXPECT_EQ(parse_size("1.5GiB"), 1536ULL << 20);
  EXPECT_EQ(parse_size("10MB"), 10'000'000U);
  EXPECT_EQ(parse_size("17"), 17U);
  for (const char* wrong :
       {"", "KiB", "-1", "12Q", "1.", "1.2.3KiB", "99999999999999999999", "18446744073709551615KiB", ".5KiB"}) {
    EXPECT_EQ(parse_size(wrong), std::nullopt) << wrong;
  }
}

TEST(Text, reads_durations) {
  EXPECT_EQ(parse_duration("500ms"), milliseconds(500));
  EXPECT_EQ(parse_duration("30s"), milliseconds(30'000));
  EXPECT_EQ(parse_duration("10m"), milliseconds(600'000));
  EXPECT_EQ(parse_duration("1.5h"), milliseconds(5'400'000));
  for (const char* wrong : {"", "30", "s", "-5s", "5 weeks", "9999999999999999999d"}) {
    EXPECT_EQ(parse_duration(wrong), std::nullopt) << wrong;
  }
}

TEST(Text, writes_sizes_durations_and_times_for_people) {
  EXPECT_EQ(human_size(1), "1 byte");
  EXPECT_EQ(human_size(1023), "1023 bytes");
  EXPECT_EQ(human_size(256ULL << 20), "256 MiB");
  EXPECT_EQ(human_size(1536ULL << 20), "1.5 GiB");
  EXPECT_EQ(human_size((1ULL << 30) - 1), "1 GiB");
  EXPECT_EQ(human_duration(milliseconds(1500)), "1.5 s");
  EXPECT_EQ(human_duration(milliseconds(600'000)), "10 min");
  EXPECT_EQ(human_duration(milliseconds(1)), "1 ms");
  EXPECT_EQ(iso_time(std::chrono::sys_time<milliseconds>(milliseconds(1'803'902'400'123))), "2027-03-01T12:00:00Z");
}

}  // namespace
}  // namespace molly::base
