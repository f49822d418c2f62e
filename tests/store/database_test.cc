#include "store/database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <latch>
#include <semaphore>
#include <thread>

#include "../temporary_folder.h"

namespace molly::store {
namespace {

using testing::HasSubstr;

const std::vector<Schema> schemas{{"test", {{1, "numbers", "CREATE TABLE numbers (n INTEGER PRIMARY KEY) STRICT"}}}};

class WriterTest : public testing::Test {
 protected:
  static Result<void> insert(Connection& connection, std::int64_t number) {
    auto done = connection.execute("INSERT INTO numbers VALUES (?)", number);
    if (!done) return std::unexpected(done.error());
    return {};
  }
  static std::int64_t count(const Database& database) {
    auto reader = database.reader().value();
    return std::get<0>(reader.query<std::int64_t>("SELECT count(*) FROM numbers").value().front());
  }
  Database open() { return Database::open(temporary_.path() / "molly.db", schemas).value(); }

  TemporaryFolder temporary_;
};

TEST_F(WriterTest, writes_what_many_threads_submit) {
  auto database = open();
  constexpr std::int64_t threads = 4;
  constexpr std::int64_t each = 200;
  std::latch completed(threads * each);
  std::atomic<int> succeeded = 0;
  std::vector<std::jthread> submitters;
  submitters.reserve(threads);
  for (int t = 0; t < threads; ++t) {
    submitters.emplace_back([&, t] {
      for (int i = 0; i < each; ++i) {
        const std::int64_t number = t * each + i;
        const auto accepted =
            database.writer().submit([number](Connection& connection) { return insert(connection, number); },
                                     [&](Result<void> result) {
                                       if (result) ++succeeded;
                                       completed.count_down();
                                     });
        ASSERT_TRUE(accepted.has_value());
      }
    });
  }
  completed.wait();
  EXPECT_EQ(succeeded, threads * each);
  EXPECT_EQ(count(database), threads * each);
}

TEST_F(WriterTest, undoes_a_failed_job_alone) {
  auto database = open();
  std::promise<void> all_submitted;
  std::shared_future<void> gate = all_submitted.get_future().share();
  std::vector<std::future<Result<void>>> outcomes;
  // The first job holds the writer until the others wait, so that they share one transaction.
  for (const std::int64_t number : {1, 2, 2, 3}) {
    auto promise = std::make_shared<std::promise<Result<void>>>();
    outcomes.push_back(promise->get_future());
    const auto accepted = database.writer().submit(
        [number, gate](Connection& connection) -> Result<void> {
          if (number == 1) gate.wait();
          // Half a job must not stay either: of the second 2 this is refused already.
          if (number == 2) [[maybe_unused]]
            const auto half = insert(connection, 100);
          return insert(connection, number);
        },
        [promise](Result<void> result) { promise->set_value(std::move(result)); });
    ASSERT_TRUE(accepted.has_value());
  }
  all_submitted.set_value();
  EXPECT_TRUE(outcomes[0].get().has_value());
  EXPECT_TRUE(outcomes[1].get().has_value());
  EXPECT_EQ(outcomes[2].get().error().code, ErrorCode::conflict);
  EXPECT_TRUE(outcomes[3].get().has_value());
  EXPECT_EQ(count(database), 4);
}

TEST_F(WriterTest, survives_a_job_that_throws) {
  auto database = open();
  const auto thrown = database.writer().write([](Connection&) -> Result<void> { throw std::runtime_error("a bug"); });
  EXPECT_THAT(thrown.error().message, HasSubstr("a bug"));
  EXPECT_TRUE(database.writer().write([](Connection& c) { return insert(c, 1); }).has_value());
}

TEST_F(WriterTest, refuses_more_than_its_queue_holds) {
  auto database = open();
  std::binary_semaphore started(0);
  std::promise<void> release;
  std::shared_future<void> gate = release.get_future().share();
  ASSERT_TRUE(database.writer()
                  .submit(
                      [&started, gate](Connection&) -> Result<void> {
                        started.release();
                        gate.wait();
                        return {};
                      },
                      [](const Result<void>&) {})
                  .has_value());
  started.acquire();
  const auto submit = [&] {
    return database.writer().submit([](Connection&) -> Result<void> { return {}; }, [](const Result<void>&) {});
  };
  for (std::size_t i = 0; i < Writer::queue_limit; ++i) ASSERT_TRUE(submit().has_value());
  const auto refused = submit();
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::overloaded);
  release.set_value();
}

TEST_F(WriterTest, completes_what_it_accepted_before_it_ends) {
  int completed = 0;
  {
    auto database = open();
    for (int i = 0; i < 600; ++i) {
      ASSERT_TRUE(database.writer()
                      .submit([i](Connection& c) { return insert(c, i); }, [&](const Result<void>&) { ++completed; })
                      .has_value());
    }
  }
  EXPECT_EQ(completed, 600);
}

// The child writes numbers and tells of each only after its completion; we kill it at some point and look.
TEST_F(WriterTest, loses_no_acknowledged_write_when_killed) {
  for (int round = 0; round < 3; ++round) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto database = open();
      for (std::int64_t number = std::int64_t{round} * 1'000'000;; ++number) {
        const auto acknowledge = [number, out = pipe[1]](const Result<void>& result) {
          if (!result || ::write(out, &number, sizeof number) != sizeof number) ::_exit(1);
        };
        while (!database.writer().submit([number](Connection& c) { return insert(c, number); }, acknowledge)) {
          std::this_thread::yield();
        }
      }
    }
    ::close(pipe[1]);
    std::vector<std::int64_t> acknowledged;
    std::int64_t number = 0;
    while (acknowledged.size() < 300 && ::read(pipe[0], &number, sizeof number) == sizeof number) {
      acknowledged.push_back(number);
    }
    ::kill(child, SIGKILL);
    while (::read(pipe[0], &number, sizeof number) == sizeof number) acknowledged.push_back(number);
    ::close(pipe[0]);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    ASSERT_GE(acknowledged.size(), 300U);
    auto reader = Connection::open(temporary_.path() / "molly.db", Connection::Mode::read_write).value();
    for (const std::int64_t written : acknowledged) {
      ASSERT_EQ(reader.query<std::int64_t>("SELECT n FROM numbers WHERE n = ?", written).value().size(), 1U) << written;
    }
    EXPECT_EQ(std::get<0>(reader.query<std::string>("PRAGMA integrity_check").value().front()), "ok");
  }
}

}  // namespace
}  // namespace molly::store
