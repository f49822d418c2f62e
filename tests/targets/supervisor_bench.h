#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "targets/supervisor.h"

namespace molly::targets {

// Starts children itself, in place of the parent. Lives on one thread, which must run the io_context.
class OwnLauncher : public ChildLauncher {
 public:
  ~OwnLauncher() override;

  void on_exit(std::function<void(base::ChildExit)> callback) override { callback_ = std::move(callback); }
  boost::asio::awaitable<Result<base::Child>> spawn(base::SpawnRequest request) override;
  boost::asio::awaitable<Result<void>> signal(base::ChildId id, int signal_number) override;
  boost::asio::awaitable<Result<base::ChildList>> list() override;

  // Tells of ended children; called at every turn of the loop.
  void reap();
  std::size_t alive() const { return children_.size(); }
  std::size_t most_alive() const { return most_alive_; }
  std::size_t spawned() const { return last_; }
  void refuse_spawns(std::string reason) { refusal_ = std::move(reason); }

 private:
  std::map<base::ChildId, base::Child> children_;
  std::function<void(base::ChildExit)> callback_;
  base::ChildId last_ = 0;
  std::size_t most_alive_ = 0;
  std::string refusal_;
};

// A supervisor with everything around it, driven step by step on the test's own thread.
class SupervisorBench {
 public:
  struct Setup {
    std::filesystem::path server;  // empty: this test program plays the server
    std::uint64_t models_in_memory = 1;
    std::filesystem::path model;
    ScheduleOptions schedule;
    ModelServer kind = ModelServer::llama_server;  // `server` is a program of this kind
    std::chrono::milliseconds start_limit{5'000};
  };
  explicit SupervisorBench(Setup setup);
  SupervisorBench() : SupervisorBench(Setup{}) {}
  ~SupervisorBench();

  void add(const std::string& name, std::vector<std::string> further_arguments = {});
  // A second supervisor over the same children, as after a crash of the control plane.
  void restart_supervisor();

  Result<Lease> acquire(const std::string& model, std::chrono::milliseconds patience = std::chrono::seconds(10));
  std::future<Result<Lease>> start_acquire(const std::string& model,
                                           std::chrono::milliseconds patience = std::chrono::seconds(10));
  Result<Lease> wait_for(std::future<Result<Lease>>& future);
  // Runs until the condition holds; false after ten seconds.
  bool run_until(const std::function<bool()>& condition);
  void run_for(std::chrono::milliseconds time);
  ModelStatus status(const std::string& model) { return supervisor->status(model).value(); }
  bool no_process_left();

  boost::asio::io_context context{1};
  std::filesystem::path folder;
  std::shared_ptr<OwnLauncher> launcher;
  std::unique_ptr<Supervisor> supervisor;

 private:
  SupervisorOptions options();
  Setup setup_;
  std::filesystem::path model_;
  std::vector<ModelPlan> plans_;
};

}  // namespace molly::targets
