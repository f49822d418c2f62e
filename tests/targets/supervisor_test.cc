#include "targets/supervisor.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <csignal>
#include <fstream>
#include <random>
#include <thread>

#include "base/os/file.h"
#include "base/os/process.h"
#include "supervisor_bench.h"
#include "targets/supervisor_plan.h"

namespace molly::targets {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

TEST(Supervisor, a_model_is_started_once_for_all_who_ask) {
  SupervisorBench bench;
  bench.add("a");
  auto first = bench.start_acquire("a");
  auto second = bench.start_acquire("a");
  const auto one = bench.wait_for(first);
  const auto two = bench.wait_for(second);
  ASSERT_TRUE(one) << one.error().message;
  ASSERT_TRUE(two);
  EXPECT_EQ(&one->model(), &two->model());
  EXPECT_EQ(bench.launcher->spawned(), 1U);
  EXPECT_EQ(bench.status("a").leases, 2U);
  EXPECT_EQ(bench.status("a").pid, one->model().pid);
  EXPECT_EQ(bench.status("a").state, ModelState::ready);
}

TEST(Supervisor, the_key_is_in_no_command_line_and_its_file_is_the_owners) {
  SupervisorBench bench;
  bench.add("a");
  const auto lease = bench.acquire("a");
  ASSERT_TRUE(lease);
  std::ifstream in("/proc/" + std::to_string(lease->model().pid) + "/cmdline", std::ios::binary);
  const std::string command{std::istreambuf_iterator<char>(in), {}};
  ASSERT_TRUE(command.contains("--api-key-file"));
  EXPECT_FALSE(command.contains(lease->model().key.reveal()));
  EXPECT_EQ(lease->model().key.size(), 64U);
  for (const auto& entry : std::filesystem::directory_iterator(bench.folder / "run")) {
    struct stat status{};
    ASSERT_EQ(::stat(entry.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, entry.path().extension() == ".key" ? 0600U : status.st_mode & 0777);
  }
}

TEST(Supervisor, memory_for_one_swaps_two_models_one_after_the_other) {
  SupervisorBench bench({.models_in_memory = 1, .schedule = {.patience = 50ms}});
  bench.add("a");
  bench.add("b");
  for (int round = 0; round < 3; ++round) {
    for (const char* model : {"a", "b"}) {
      const auto lease = bench.acquire(model);
      ASSERT_TRUE(lease) << lease.error().message;
      EXPECT_EQ(lease->model().name, model);
    }
  }
  EXPECT_EQ(bench.launcher->most_alive(), 1U) << "never the next start before the last exit";
}

TEST(Supervisor, a_lease_pins_its_model_and_a_wait_ends_at_its_deadline) {
  SupervisorBench bench({.models_in_memory = 1, .schedule = {.patience = 10ms}});
  bench.add("a");
  bench.add("b");
  const auto lease = bench.acquire("a");
  ASSERT_TRUE(lease);
  const auto refused = bench.acquire("b", 200ms);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::timeout);
  EXPECT_FALSE(lease->model().ended);
  EXPECT_EQ(bench.status("b").waiting, 0U);
}

TEST(Supervisor, a_cancelled_wait_leaves_no_residue) {
  SupervisorBench bench({.models_in_memory = 1});
  bench.add("a");
  bench.add("b");
  auto lease = bench.acquire("a");
  ASSERT_TRUE(lease);
  asio::cancellation_signal signal;
  std::optional<ErrorCode> code;
  bool ended = false;
  asio::co_spawn(
      bench.context,
      [&]() -> asio::awaitable<void> {
        auto waiting = co_await bench.supervisor->acquire("b", std::chrono::steady_clock::now() + 1h);
        if (!waiting) code = waiting.error().code;
      },
      asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr) { ended = true; }));
  bench.run_for(5ms);
  EXPECT_EQ(bench.status("b").waiting, 1U);
  signal.emit(asio::cancellation_type::terminal);
  EXPECT_TRUE(bench.run_until([&] { return ended; }));
  EXPECT_EQ(bench.status("b").waiting, 0U);
  lease = failure(ErrorCode::internal, "given back");
  bench.run_for(20ms);
  EXPECT_EQ(bench.status("a").state, ModelState::ready) << "nobody wants b any more";
}

TEST(Supervisor, leases_are_given_and_returned_on_any_thread) {
  SupervisorBench bench;
  bench.add("a");
  ASSERT_TRUE(bench.acquire("a"));
  std::vector<std::thread> threads;
  std::atomic<int> granted = 0;
  std::atomic<int> running = 4;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      asio::io_context context(1);
      asio::co_spawn(
          context,
          [&]() -> asio::awaitable<void> {
            for (int round = 0; round < 200; ++round) {
              const auto lease = co_await bench.supervisor->acquire("a", std::chrono::steady_clock::now() + 20s);
              if (lease) ++granted;
              co_await asio::post(asio::use_awaitable);
            }
          },
          [](std::exception_ptr) {});
      context.run();
      --running;
    });
  }
  EXPECT_TRUE(bench.run_until([&] { return running == 0; }));
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(granted, 800);
  EXPECT_EQ(bench.status("a").leases, 0U);
}

TEST(Supervisor, a_killed_child_marks_its_leases_and_the_next_request_succeeds) {
  SupervisorBench bench;
  bench.add("a");
  const auto lease = bench.acquire("a");
  ASSERT_TRUE(lease);
  ::kill(lease->model().pid, SIGKILL);
  EXPECT_TRUE(bench.run_until([&] { return lease->model().ended.load(); }));
  EXPECT_TRUE(bench.run_until([&] { return bench.status("a").reason == "killed by signal 9 (Killed)"; }));
  const auto next = bench.acquire("a");
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_NE(next->model().pid, lease->model().pid);
}

TEST(Supervisor, a_start_that_fails_says_why_and_recovers_when_the_cause_is_gone) {
  SupervisorBench bench({.schedule = {.first_backoff = 20ms, .max_backoff = 50ms}});
  const auto marker = bench.folder / "mended";
  bench.add("a", {"--fake-exit-unless", marker.string()});
  for (int i = 0; i < 10; ++i) {
    const auto refused = bench.acquire("a");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
    EXPECT_TRUE(refused.error().message.contains("exited with code 1 while starting; its log is "))
        << refused.error().message;
    EXPECT_TRUE(refused.error().retry_after);
    bench.run_for(60ms);
  }
  EXPECT_EQ(bench.status("a").state, ModelState::failed);
  EXPECT_EQ(bench.status("a").attempts, 10U);
  std::ofstream(marker) << "now";
  const auto lease = bench.acquire("a");
  EXPECT_TRUE(lease) << lease.error().message;
}

TEST(Supervisor, a_child_that_never_listens_is_given_up_and_stopped) {
  SupervisorBench bench({.start_limit = 200ms});
  bench.add("a", {"--fake-silent", "--fake-stubborn", "9"});
  const auto refused = bench.acquire("a");
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.contains("did not become ready in time")) << refused.error().message;
  EXPECT_TRUE(bench.no_process_left());
}

TEST(Supervisor, a_child_that_computes_nothing_is_not_ready) {
  SupervisorBench bench;
  bench.add("a", {"--fake-no-token"});
  const auto refused = bench.acquire("a");
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.contains("status 500")) << refused.error().message;
}

TEST(Supervisor, a_spawn_that_the_parent_refuses_is_the_reason) {
  SupervisorBench bench;
  bench.add("a");
  bench.launcher->refuse_spawns("cannot fork: Resource temporarily unavailable");
  const auto refused = bench.acquire("a");
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.contains("cannot fork")) << refused.error().message;
}

TEST(Supervisor, stops_children_that_ignore_the_first_or_every_sigterm) {
  for (const char* terms : {"1", "2", "9"}) {
    SupervisorBench bench;
    bench.add("a", {"--fake-stubborn", terms});
    ASSERT_TRUE(bench.acquire("a"));
    ASSERT_TRUE(bench.supervisor->unload("a"));
    EXPECT_TRUE(bench.no_process_left()) << terms;
    EXPECT_TRUE(bench.run_until([&] { return bench.status("a").state == ModelState::stopped; }));
    EXPECT_TRUE(std::filesystem::is_empty(bench.folder / "run")) << "socket and key are gone";
  }
}

TEST(Supervisor, an_idle_model_unloads_itself) {
  SupervisorBench bench({.schedule = {.keep_alive = 100ms}});
  bench.add("a");
  ASSERT_TRUE(bench.acquire("a"));
  EXPECT_TRUE(bench.no_process_left());
  EXPECT_TRUE(bench.acquire("a")) << "and comes back when asked";
}

TEST(Supervisor, a_model_can_be_unloaded_while_it_starts) {
  SupervisorBench bench;
  bench.add("a", {"--fake-silent"});
  ASSERT_TRUE(bench.supervisor->load("a"));
  EXPECT_TRUE(bench.run_until([&] { return bench.launcher->alive() == 1; }));
  ASSERT_TRUE(bench.supervisor->unload("a"));
  EXPECT_TRUE(bench.no_process_left());
  EXPECT_TRUE(bench.run_until([&] { return bench.status("a").state == ModelState::stopped; }));
}

TEST(Supervisor, unknown_models_are_not_found) {
  SupervisorBench bench;
  EXPECT_EQ(bench.acquire("nobody").error().code, ErrorCode::not_found);
  EXPECT_EQ(bench.supervisor->load("nobody").error().code, ErrorCode::not_found);
  EXPECT_FALSE(bench.supervisor->status("nobody"));
  EXPECT_EQ(bench.supervisor->add_model({.name = "x", .file = "/no/such/file"}).error().code, ErrorCode::io_failed);
  EXPECT_EQ(bench.supervisor->add_model({.name = "a\nb", .file = "/tmp"}).error().code, ErrorCode::invalid_request);
}

TEST(Supervisor, a_new_control_plane_takes_over_the_children_of_the_old_one) {
  SupervisorBench bench({.models_in_memory = 2});
  bench.add("a");
  bench.add("b");
  pid_t pid = 0;
  {
    const auto lease = bench.acquire("a");
    ASSERT_TRUE(lease);
    pid = lease->model().pid;
  }
  bench.restart_supervisor();
  const auto lease = bench.acquire("a");
  ASSERT_TRUE(lease) << lease.error().message;
  EXPECT_EQ(lease->model().pid, pid) << "the same process, with its socket and key";
  EXPECT_EQ(bench.launcher->spawned(), 1U);
}

TEST(Supervisor, children_that_no_plan_wants_any_more_are_stopped_at_a_takeover) {
  SupervisorBench bench({.models_in_memory = 2});
  bench.add("a");
  ASSERT_TRUE(bench.acquire("a"));
  bench.supervisor->remove_model("a");
  bench.restart_supervisor();
  bench.add("b");
  EXPECT_TRUE(bench.acquire("b"));
  EXPECT_TRUE(bench.run_until([&] { return bench.launcher->alive() <= 2; }));
}

TEST(Supervisor, a_stopped_one_grants_nothing_and_leaves_the_children_alone) {
  SupervisorBench bench;
  bench.add("a");
  ASSERT_TRUE(bench.acquire("a"));
  bench.supervisor->stop();
  EXPECT_EQ(bench.acquire("a").error().code, ErrorCode::unavailable);
  EXPECT_EQ(bench.launcher->alive(), 1U);
}

TEST(ChildPlan, memos_survive_the_way_through_the_parent) {
  const ChildMemo memo{.model = "a b", .files = {.socket = "/run/x.sock", .key = "/run/x.key"}, .plan = "7"};
  EXPECT_EQ(read_memo(write_memo(memo)), memo);
  for (const char* text : {"", "x", "molly model 1\na\nb\nc\n", "molly model 2\na\nb\nc\nd\n"}) {
    EXPECT_FALSE(read_memo(text)) << text;
  }
}

TEST(ChildPlan, each_slot_has_the_whole_context_and_memory_is_counted_so) {
  SupervisorBench bench;
  const auto file = bench.folder / "small.gguf";
  const SupervisorOptions options{.server = "/usr/bin/llama-server", .threads = 2, .cache_bytes = 1 << 20};
  const auto one = prepare_plan({.name = "a", .file = file, .slots = 1}, options);
  const auto four = prepare_plan({.name = "a", .file = file, .slots = 4}, options);
  ASSERT_TRUE(one && four);
  EXPECT_EQ(four->context_length, 128U);
  EXPECT_GT(four->memory_bytes, one->memory_bytes);
  const auto arguments = child_arguments(*four, options, {.socket = "/run/s.sock", .key = "/run/s.key"});
  const auto at = [&](const char* name) { return *std::next(std::ranges::find(arguments, name)); };
  EXPECT_EQ(at("--ctx-size"), "512");
  EXPECT_EQ(at("--parallel"), "4");
  EXPECT_EQ(at("--threads"), "2");
  EXPECT_NE(plan_fingerprint(*one, options), plan_fingerprint(*four, options));
}

}  // namespace
}  // namespace molly::targets
