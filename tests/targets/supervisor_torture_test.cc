#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include "base/os/process.h"
#include "supervisor_bench.h"
#include "targets/model_list.h"

// 200 random steps of a hostile world; afterwards nothing may be stuck, left over or lost.
namespace molly::targets {
namespace {

using namespace std::chrono_literals;

void torture(SupervisorBench& bench, const std::vector<std::string>& models, std::size_t fit, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::future<Result<Lease>>> waiting;
  for (int step = 0; step < 200; ++step) {
    const std::string& model = models[random() % models.size()];
    const pid_t pid = bench.status(model).pid;
    switch (random() % 8) {
      case 0: std::ignore = bench.supervisor->load(model); break;
      case 1: std::ignore = bench.supervisor->unload(model); break;
      case 2:
        if (pid != 0) ::kill(pid, SIGKILL);
        break;
      case 3:
        if (pid != 0) ::kill(pid, SIGTERM);
        break;
      case 4:
        if (!waiting.empty()) waiting.erase(waiting.begin());
        break;
      default: waiting.push_back(bench.start_acquire(model, std::chrono::milliseconds(random() % 1000)));
    }
    bench.run_for(std::chrono::milliseconds(1 + random() % 25));
    ASSERT_LE(bench.launcher->alive(), fit) << "step " << step;
    const auto status = bench.supervisor->status();
    ASSERT_LE(status.memory_used, status.memory_budget) << "step " << step;
  }
  for (auto& future : waiting) std::ignore = bench.wait_for(future);
  waiting.clear();
  for (const auto& model : models) {
    ASSERT_TRUE(bench.supervisor->load(model));  // forgets failures
    const auto lease = bench.acquire(model, 20s);
    ASSERT_TRUE(lease) << model << ": " << lease.error().message;
    EXPECT_EQ(::kill(lease->model().pid, 0), 0);
  }
  for (const auto& model : models) {
    EXPECT_EQ(bench.status(model).leases, 0U);
    EXPECT_EQ(bench.status(model).waiting, 0U);
    EXPECT_TRUE(bench.supervisor->unload(model));
  }
  EXPECT_TRUE(bench.no_process_left()) << "no zombie, no forgotten child";
  EXPECT_TRUE(std::filesystem::is_empty(bench.folder / "run"));
  EXPECT_EQ(bench.supervisor->status().memory_used, 0U);
}

TEST(SupervisorTorture, random_kills_loads_and_unloads_of_played_servers) {
  for (const unsigned seed : {1U, 2U}) {
    SupervisorBench bench(
        {.models_in_memory = 2,
         .schedule = {.patience = 50ms, .first_backoff = 10ms, .max_backoff = 40ms, .drain_limit = 300ms}});
    for (const char* model : {"a", "b", "c"}) bench.add(model, {"--fake-stubborn", seed == 2 ? "2" : "1"});
    torture(bench, {"a", "b", "c"}, 2, seed);
  }
}

// The real programs. The engine is built beside this test, but not where only some programs are (under TSan).
std::vector<SupervisorBench::Setup> real_servers() {
  const SupervisorBench::Setup common{
      .models_in_memory = 1,
      .model = MOLLY_SOURCE_DIR "/models/nano.gguf",
      .schedule = {.patience = 50ms, .first_backoff = 10ms, .max_backoff = 40ms, .drain_limit = 300ms},
      .start_limit = 20s};
  std::vector<SupervisorBench::Setup> found;
  if (const auto llama = base::find_program("llama-server")) {
    found.push_back(common);
    found.back().server = *llama;
  }
  if (const auto engine = find_engine({})) {
    found.push_back(common);
    found.back().server = *engine;
    found.back().kind = ModelServer::molly_engine;
  }
  EXPECT_FALSE(found.empty()) << "neither llama-server nor molly-engine is here";
  return found;
}

TEST(SupervisorTorture, random_kills_loads_and_unloads_of_the_real_servers) {
  for (const auto& setup : real_servers()) {
    SupervisorBench bench(setup);
    bench.add("a");
    bench.add("b");
    torture(bench, {"a", "b"}, 1, 4);
  }
}

// A connection on which an endless answer has begun.
base::FileDescriptor open_stream(const RunningModel& model) {
  base::FileDescriptor connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  model.socket.native().copy(address.sun_path, sizeof address.sun_path - 1);
  EXPECT_EQ(::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const std::string body = R"({"prompt":"a","max_tokens":1000000,"stream":true,"ignore_eos":true})";
  const std::string request =
      "POST /v1/completions HTTP/1.1\r\nHost: molly\r\nAuthorization: Bearer " + std::string(model.key.reveal()) +
      "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  EXPECT_EQ(::send(connection.get(), request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  std::string answer;
  char buffer[4096];
  while (!answer.contains("data: ")) {
    const ssize_t count = ::read(connection.get(), buffer, sizeof buffer);
    if (count <= 0) break;
    answer.append(buffer, static_cast<std::size_t>(count));
  }
  EXPECT_TRUE(answer.contains("data: ")) << answer;
  return connection;
}

TEST(SupervisorTorture, the_real_servers_stop_though_a_stream_is_open) {
  for (auto setup : real_servers()) {
    setup.schedule = {.drain_limit = 100ms};
    SupervisorBench bench(setup);
    bench.add("a");
    const auto lease = bench.acquire("a");
    ASSERT_TRUE(lease) << lease.error().message;
    const auto stream = open_stream(lease->model());
    ASSERT_TRUE(bench.supervisor->unload("a"));
    EXPECT_TRUE(bench.no_process_left());
    EXPECT_TRUE(lease->model().ended);
    EXPECT_TRUE(bench.acquire("a")) << "and serves again";
  }
}

}  // namespace
}  // namespace molly::targets
