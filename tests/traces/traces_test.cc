#include "traces/traces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <thread>

#include "../temporary_folder.h"
#include "samples.h"
#include "traces/segment.h"

namespace molly::traces {
namespace {

using testing::HasSubstr;

class TracesTest : public testing::Test {
 protected:
  std::unique_ptr<Traces> open(std::uint64_t max_bytes = 16 << 20) {
    return Traces::open(folder_.path(), {max_bytes}).value();
  }
  std::uint64_t bytes_on_disk() const {
    std::uint64_t total = 0;
    for (const Segment& segment : list_segments(folder_.path()).value()) total += segment.bytes;
    return total;
  }
  std::filesystem::path newest() const { return list_segments(folder_.path()).value().back().path; }

  TemporaryFolder folder_;
};

TEST_F(TracesTest, finds_what_was_recorded_just_now) {
  const auto traces = open();
  const auto record = sample_record();
  traces->record(record);
  const auto found = traces->find(record.trace).value();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(to_json(*found), to_json(record));
  EXPECT_FALSE(traces->find(TraceId::generate()).value().has_value());
}

TEST_F(TracesTest, survive_a_restart_and_go_on) {
  const auto first = sample_record();
  open()->record(first);
  const auto traces = open();
  const auto second = sample_record();
  traces->record(second);
  EXPECT_EQ(to_json(traces->find(first.trace).value().value()), to_json(first));
  EXPECT_EQ(to_json(traces->find(second.trace).value().value()), to_json(second));
  EXPECT_EQ(list_segments(folder_.path()).value().size(), 1U);
}

TEST_F(TracesTest, give_the_newest_first) {
  std::vector<TraceId> made;
  const auto traces = open(1 << 20);
  for (int i = 0; i < 5'000; ++i) {
    const auto record = sample_record();
    made.push_back(record.trace);
    traces->record(record);
    if (i % 500 == 0) {
      EXPECT_TRUE(traces->flush().has_value());
    }
  }
  const auto recent = traces->recent(1'000).value();
  ASSERT_EQ(recent.size(), 1'000U);
  for (std::size_t i = 0; i < recent.size(); ++i) ASSERT_EQ(recent[i].trace, made[made.size() - 1 - i]);
  EXPECT_EQ(recent.back().catalogue->targets.at(1).name, "office");
}

TEST_F(TracesTest, stay_within_their_bound_and_keep_the_newest) {
  constexpr std::uint64_t bound = 4 << 20;
  const auto traces = open(bound);
  auto record = sample_record();
  const TraceId oldest = record.trace;
  std::uint64_t highest = 0;
  for (int i = 0; i < 100'000; ++i) {
    traces->record(record);
    record.trace = TraceId::generate();
    if (i % 1'000 != 0) continue;
    ASSERT_TRUE(traces->flush().has_value());
    highest = std::max(highest, bytes_on_disk());
  }
  ASSERT_TRUE(traces->flush().has_value());
  EXPECT_EQ(traces->lost(), 0U);
  EXPECT_EQ(traces->recorded(), 100'000U);
  EXPECT_LE(std::max(highest, bytes_on_disk()), bound);
  EXPECT_GT(bytes_on_disk(), bound / 2);
  EXPECT_FALSE(traces->find(oldest).value().has_value());
  EXPECT_EQ(traces->recent(10'000).value().size(), 10'000U);
}

TEST_F(TracesTest, shrink_to_a_smaller_bound) {
  const auto traces = open(4 << 20);
  for (int i = 0; i < 20'000; ++i) {
    traces->record(sample_record());
    if (i % 1'000 == 0) {
      ASSERT_TRUE(traces->flush().has_value());
    }
  }
  traces->apply({1 << 20});
  traces->record(sample_record());
  ASSERT_TRUE(traces->flush().has_value());
  EXPECT_LE(bytes_on_disk(), 1U << 20);
}

TEST_F(TracesTest, pass_over_a_torn_tail_and_mend_it) {
  const auto first = sample_record();
  const auto torn = sample_record();
  {
    const auto traces = open();
    traces->record(first);
    traces->record(torn);
  }
  std::filesystem::resize_file(newest(), std::filesystem::file_size(newest()) - 5);
  EXPECT_TRUE(find_in(folder_.path(), first.trace).value().has_value());
  EXPECT_FALSE(find_in(folder_.path(), torn.trace).value().has_value());
  const auto traces = open();
  const auto next = sample_record();
  traces->record(next);
  EXPECT_TRUE(traces->find(first.trace).value().has_value());
  EXPECT_TRUE(traces->find(next.trace).value().has_value());
}

TEST_F(TracesTest, begin_anew_beside_a_file_of_garbage) {
  std::ofstream(segment_path(folder_.path(), 7, 1)) << "garbage";
  std::ofstream(folder_.path() / "letter.txt") << "mine";
  const auto traces = open();
  const auto record = sample_record();
  traces->record(record);
  EXPECT_TRUE(traces->find(record.trace).value().has_value());
  EXPECT_EQ(list_segments(folder_.path()).value().back().sequence, 8U);
}

TEST_F(TracesTest, name_targets_by_the_configuration_of_each_record) {
  const auto traces = open();
  std::vector<DecisionRecord> records;
  for (int i = 0; i < 30; ++i) {
    auto record = sample_record();
    record.catalogue =
        SharedCatalogue({.policy = {}, .targets = {{}, {"target-" + std::to_string(i), Tier::t2}}, .rules = {}});
    records.push_back(record);
  }
  // Requests under the old and the new configuration end in any order.
  for (int round = 0; round < 3; ++round) {
    for (const auto& record : records) traces->record(record);
    ASSERT_TRUE(traces->flush().has_value());
  }
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto found = traces->find(records[i].trace).value();
    EXPECT_EQ(found.value().catalogue->targets.at(1).name, "target-" + std::to_string(i));
  }
}

TEST_F(TracesTest, belong_to_one_process_at_a_time) {
  const auto traces = open();
  const auto second = Traces::open(folder_.path(), {});
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::conflict);
}

TEST_F(TracesTest, tell_of_a_disk_that_cannot_be_written_and_recover) {
  const auto traces = open();
  const auto moved = folder_.path().string() + "-moved";
  std::filesystem::rename(folder_.path(), moved);
  traces->record(sample_record());
  const auto flushed = traces->flush();
  ASSERT_FALSE(flushed.has_value());
  EXPECT_THAT(flushed.error().message, HasSubstr("cannot be made"));
  EXPECT_EQ(traces->lost(), 1U);
  std::filesystem::rename(moved, folder_.path());
  const auto record = sample_record();
  traces->record(record);
  EXPECT_TRUE(traces->find(record.trace).value().has_value());
}

TEST_F(TracesTest, are_recorded_from_many_threads_while_others_read) {
  const auto traces = open(1 << 20);
  std::vector<std::jthread> threads;
  threads.reserve(3);
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1'500; ++i) traces->record(sample_record());
    });
  }
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(traces->recent(10).has_value());
  threads.clear();
  EXPECT_EQ(traces->recorded() + traces->lost(), 4'500U);
}

TEST_F(TracesTest, flushed_before_a_kill_are_there_after_it) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto traces = open();
    while (true) {
      const auto record = sample_record();
      traces->record(record);
      const bool flushed = traces->flush().has_value();
      if (!flushed || ::write(pipe[1], record.trace.bytes().data(), 16) != 16) ::_exit(1);
    }
  }
  ::close(pipe[1]);
  std::vector<TraceId> flushed;
  std::array<std::uint8_t, 16> bytes{};
  while (::read(pipe[0], bytes.data(), bytes.size()) == 16) {
    flushed.push_back(TraceId::from_bytes(bytes));
    if (flushed.size() == 200) ::kill(child, SIGKILL);
  }
  ::close(pipe[0]);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  ASSERT_GE(flushed.size(), 200U);
  for (const TraceId& id : flushed) ASSERT_TRUE(find_in(folder_.path(), id).value().has_value());
}

TEST_F(TracesTest, recording_takes_the_time_printed_here) {
  const auto traces = open();
  auto record = sample_record();
  record.targets.resize(16);
  constexpr int rounds = 100'000;
  const auto begin = ::clock();
  for (int i = 0; i < rounds; ++i) traces->record(record);
  const double nanoseconds = static_cast<double>(::clock() - begin) * (1e9 / CLOCKS_PER_SEC) / rounds;
  std::printf("record, with its writing out: %.0f ns of processor time, lost %llu\n", nanoseconds,
              static_cast<unsigned long long>(traces->lost()));
}

TEST(TraceSettings, come_from_their_section) {
  auto document = config::Document::parse("[traces]\nmax_bytes = \"64MiB\"\n", "f");
  EXPECT_EQ(read_settings(document.root().table("traces")).max_bytes, 64U << 20);
  EXPECT_TRUE(document.finish().has_value());
  auto small = config::Document::parse("[traces]\nmax_bytes = 10\n", "f");
  read_settings(small.root().table("traces"));
  EXPECT_FALSE(small.finish().has_value());
}

}  // namespace
}  // namespace molly::traces
