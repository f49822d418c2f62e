#include "audit/log.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>

#include "log_fixture.h"

namespace molly::audit {
namespace {

using ::testing::HasSubstr;

using LogTest = AuditTest;

std::vector<std::string> outcomes_of(const std::vector<Entry>& entries, Kind kind) {
  std::vector<std::string> outcomes;
  for (const Entry& entry : entries)
    if (entry.record.kind == kind) outcomes.push_back(entry.record.outcome);
  return outcomes;
}

TEST_F(LogTest, appended_records_are_read_back_in_order) {
  {
    const auto log = open();
    for (int i = 0; i < 10; ++i) {
      const auto receipt = log->append(dispatch("target" + std::to_string(i)));
      ASSERT_TRUE(receipt);
      EXPECT_EQ(receipt->durability(), Durability::kernel);
      EXPECT_EQ(receipt->sequence(), 2 + i);
      EXPECT_EQ(receipt->target(), "target" + std::to_string(i));
    }
  }
  const auto all = entries();
  ASSERT_EQ(all.size(), 12);
  EXPECT_EQ(all.front().record.kind, Kind::opened);
  EXPECT_EQ(all.back().record.kind, Kind::closed);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(all[1 + i].record, dispatch("target" + std::to_string(i)));
}

TEST_F(LogTest, a_record_is_in_the_file_when_append_returns) {
  const auto log = open();
  ASSERT_TRUE(log->append(dispatch()));
  EXPECT_EQ(entries().size(), 2);
}

TEST_F(LogTest, files_are_for_the_owner_only) {
  const auto log = open();
  using std::filesystem::perms, std::filesystem::status;
  EXPECT_EQ(status(folder_).permissions(), perms::owner_all);
  EXPECT_EQ(status(segment(1)).permissions(), perms::owner_read | perms::owner_write);
}

TEST_F(LogTest, only_one_can_hold_it) {
  const auto log = open();
  const auto second = Log::open(folder_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::conflict);
}

TEST_F(LogTest, reopening_continues_the_chain_and_says_how_it_was_closed) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(open()->append(dispatch()));
  EXPECT_EQ(verified().records, 9);
  EXPECT_TRUE(verified().intact());
  EXPECT_THAT(outcomes_of(entries(), Kind::opened), ::testing::ElementsAre("new", "clean", "clean"));
}

TEST_F(LogTest, a_record_cut_short_anywhere_is_cut_off_and_recorded) {
  ASSERT_TRUE(open()->append(dispatch()));
  const std::string whole = read_all(segment(1));
  const auto all = entries();
  const std::size_t last = 4 + encode(1, {}, all.back().record).size() + 32;
  for (std::size_t cut = 1; cut < last; ++cut) {
    write_all(segment(1), whole.substr(0, whole.size() - cut));
    EXPECT_FALSE(verified().intact());
    open();
    const auto now = entries();
    ASSERT_EQ(now.size(), all.size() + 1) << cut;
    EXPECT_EQ(now[all.size() - 1].record.outcome, "torn");
    EXPECT_EQ(now[all.size() - 1].record.counts.bytes_in, last - cut);
    ASSERT_TRUE(verified().intact()) << cut;
    EXPECT_EQ(verified().unclean_openings, 1);
  }
}

TEST_F(LogTest, zeros_behind_the_last_record_are_cut_off) {
  open();
  write_all(segment(1), read_all(segment(1)) + std::string(5000, '\0'));
  open();
  EXPECT_EQ(outcomes_of(entries(), Kind::opened).back(), "torn");
  EXPECT_TRUE(verified().intact());
}

TEST_F(LogTest, damage_that_is_no_torn_tail_is_not_cut_off) {
  ASSERT_TRUE(open()->append(dispatch()));
  const std::string whole = read_all(segment(1));
  const std::size_t second_record = 64 + 4 + encode(1, {}, entries()[0].record).size() + 32;
  for (const std::size_t at : {second_record, second_record + 1, second_record + 50, whole.size() - 1}) {
    std::string altered = whole;
    altered[at] = static_cast<char>(altered[at] ^ 0x10);
    write_all(segment(1), altered);
    const auto log = Log::open(folder_);
    ASSERT_FALSE(log) << at;
    EXPECT_THAT(log.error().message, HasSubstr("damaged"));
    EXPECT_EQ(read_all(segment(1)), altered);
  }
}

TEST_F(LogTest, long_segments_are_followed_by_new_ones_on_the_same_chain) {
  Results results;
  {
    const auto log = open({.segment_bytes = 1000});
    for (int i = 0; i < 20; ++i) {
      log->append_synced(dispatch(), results.receiver());
      results.wait_for(1);
    }
  }
  EXPECT_GE(verified().segments, 4);
  EXPECT_EQ(verified().records, 22);
  EXPECT_TRUE(verified().intact());
  open();
  EXPECT_EQ(outcomes_of(entries(), Kind::opened).back(), "clean");
}

TEST_F(LogTest, synced_receipts_come_after_a_sync) {
  const auto log = open();
  Results results;
  log->append_synced(dispatch(), results.receiver());
  const auto received = results.wait_for(1);
  ASSERT_TRUE(received[0]);
  EXPECT_EQ(received[0]->durability(), Durability::synced);
  EXPECT_GE(log->status().synced, received[0]->sequence());
}

TEST_F(LogTest, many_waiters_share_one_sync) {
  std::mutex gate;
  std::atomic<int> syncs = 0;
  auto fault = [&](DiskCall call) {
    if (call == DiskCall::sync && ++syncs > 2) const std::scoped_lock wait(gate);
    return Fault{};
  };
  const auto log = open({.fault = fault});  // two syncs: the new segment's and the opening's
  Results results;
  {
    const std::scoped_lock hold(gate);
    for (int i = 0; i < 100; ++i) log->append_synced(dispatch(), results.receiver());
  }
  for (const auto& result : results.wait_for(100)) EXPECT_TRUE(result);
  EXPECT_LE(log->status().syncs, 2);
}

TEST_F(LogTest, kernel_records_reach_the_disk_without_being_asked_for) {
  const auto log = open({.sync_within = std::chrono::milliseconds(1)});
  const auto receipt = log->append(dispatch());
  while (log->status().synced < receipt->sequence()) std::this_thread::yield();
}

TEST_F(LogTest, concurrent_appends_make_one_chain) {
  constexpr int threads = 4, each = 200;
  std::atomic<int> synced = 0;
  {
    const auto log = open({.segment_bytes = 20'000});
    std::vector<std::thread> writers;
    for (int t = 0; t < threads; ++t)
      writers.emplace_back([&] {
        for (int i = 0; i < each; ++i) {
          if (i % 2 == 0) {
            EXPECT_TRUE(log->append(dispatch()));
            continue;
          }
          log->append_synced(dispatch(), [&](Result<Receipt> result) { synced += result.has_value(); });
        }
      });
    for (std::thread& writer : writers) writer.join();
  }
  EXPECT_EQ(synced, threads * each / 2);
  EXPECT_EQ(verified().records, threads * each + 2);
  EXPECT_TRUE(verified().intact());
}

TEST_F(LogTest, texts_that_are_too_long_are_refused) {
  const auto log = open();
  EXPECT_FALSE(log->append(dispatch(std::string(Record::max_text + 1, 'x'))));
  EXPECT_TRUE(log->append(dispatch(std::string(Record::max_text, 'x'))));
  EXPECT_TRUE(verified().intact());
}

// A disk whose next calls can be made to fail.
struct Disk {
  std::atomic<int> write_error = 0;
  std::atomic<int> sync_error = 0;
  std::atomic<std::size_t> after_bytes = 0;

  LogOptions options() {
    return {.sync_within = std::chrono::milliseconds(1),
            .retry_after = std::chrono::milliseconds(1),
            .fault = [this](DiskCall call) {
              return Fault{call == DiskCall::write ? write_error : sync_error, after_bytes};
            }};
  }
};

void wait_until_working(const Log& log) {
  while (log.status().failing) std::this_thread::yield();
}

TEST_F(LogTest, a_full_disk_refuses_everything_until_there_is_room_again) {
  for (const std::size_t written : {0, 1, 50, 200}) {
    SCOPED_TRACE(written);
    std::filesystem::remove_all(folder_);
    Disk disk;
    {
      const auto log = open(disk.options());
      disk.after_bytes = written;
      disk.write_error = ENOSPC;
      const auto refused = log->append(dispatch());
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().code, ErrorCode::io_failed);
      Results results;
      log->append_synced(dispatch(), results.receiver());
      EXPECT_FALSE(results.wait_for(1)[0]);
      disk.write_error = 0;
      wait_until_working(*log);
      ASSERT_TRUE(log->append(dispatch()));
    }
    EXPECT_TRUE(verified().intact());
    EXPECT_EQ(outcomes_of(entries(), Kind::gap).size(), 1);
    EXPECT_EQ(outcomes_of(entries(), Kind::dispatch).size(), 1);
  }
}

TEST_F(LogTest, a_failed_sync_refuses_those_who_wait_and_keeps_what_was_acknowledged) {
  Disk disk;
  {
    const auto log = open(disk.options());
    disk.sync_error = EIO;
    Results results;
    log->append_synced(dispatch("refused"), results.receiver());
    EXPECT_FALSE(results.wait_for(1)[0]);
    EXPECT_TRUE(log->status().failing);
    EXPECT_FALSE(log->append(dispatch()));
    disk.sync_error = 0;
    wait_until_working(*log);
    log->append_synced(dispatch("taken"), results.receiver());
    EXPECT_TRUE(results.wait_for(1)[0]);
  }
  EXPECT_TRUE(verified().intact());
}

TEST_F(LogTest, local_service_goes_on_unrecorded_while_the_disk_fails_and_the_log_says_so) {
  Disk disk;
  {
    const auto log = open(disk.options());
    EXPECT_FALSE(log->unrecorded(dispatch()));
    disk.write_error = EIO;
    ASSERT_FALSE(log->append(dispatch()));
    const auto receipt = log->unrecorded(dispatch());
    ASSERT_TRUE(receipt);
    EXPECT_EQ(receipt->durability(), Durability::unrecorded);
    Record remote = dispatch();
    remote.tier = Tier::t2;
    EXPECT_FALSE(log->unrecorded(remote));
    disk.write_error = 0;
    wait_until_working(*log);
    EXPECT_EQ(log->status().unrecorded, 1);
  }
  EXPECT_EQ(verified().unrecorded, 1);
}

TEST_F(LogTest, an_unavailable_log_serves_local_requests_only) {
  const auto log = Log::unavailable({ErrorCode::io_failed, "No disk."});
  EXPECT_FALSE(log->append(dispatch()));
  EXPECT_TRUE(log->unrecorded(dispatch()));
  EXPECT_TRUE(log->status().failing);
}

// Appends as fast as it can and reports every acknowledged record through the pipe, until it is killed.
[[noreturn]] void append_until_killed(const std::filesystem::path& folder, int acknowledged) {
  auto log = Log::open(folder, {.segment_bytes = 4000});
  if (!log) ::_exit(1);
  while (true) {
    const auto receipt = (*log)->append(dispatch());
    const std::uint64_t sequence = receipt ? receipt->sequence() : 0;
    if (::write(acknowledged, &sequence, sizeof sequence) != sizeof sequence) ::_exit(1);
  }
}

TEST_F(LogTest, kill_at_any_time_loses_no_acknowledged_record) {
  std::mt19937 random(7);
  for (int round = 0; round < 25; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) append_until_killed(folder_, ends[1]);
    ::close(ends[1]);
    std::uint64_t last = 0;
    std::uint64_t sequence = 0;
    const int reads = static_cast<int>(random() % 200);
    for (int i = 0; i < reads && ::read(ends[0], &sequence, sizeof sequence) == sizeof sequence; ++i) last = sequence;
    ::kill(child, SIGKILL);
    while (::read(ends[0], &sequence, sizeof sequence) == sizeof sequence) last = sequence;
    ::close(ends[0]);
    ::waitpid(child, nullptr, 0);
    open();
    const Report report = verified();
    ASSERT_TRUE(report.intact()) << report.first_bad->why;
    ASSERT_GE(report.records, last);
  }
}

}  // namespace
}  // namespace molly::audit
