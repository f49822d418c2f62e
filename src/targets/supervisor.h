#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/secret.h"
#include "core/error.h"
#include "sizing/engine_plan.h"
#include "targets/supervisor_child.h"
#include "targets/supervisor_schedule.h"

// One child process (molly-engine or llama-server) for each model that is loaded, started, watched and stopped here.
namespace molly::targets {

// The program that serves a model.
enum class ModelServer : std::uint8_t { llama_server, molly_engine };
std::string_view to_string(ModelServer server);

// How one model is served.
struct ModelPlan {
  std::string name;  // unique; no control characters, at most 200 bytes
  std::filesystem::path file;
  std::filesystem::path projector;  // multimodal projector file; empty: none
  ModelServer server = ModelServer::llama_server;
  std::uint64_t context_length = 0;          // tokens for each request; 0: the trained length, at most 8192
  std::uint32_t slots = 4;                   // requests served at once: as many leases are given out
  std::uint32_t threads = 0;                 // 0: SupervisorOptions::threads
  std::string cpus;                          // processors that it may use, "0,2-3"; empty: all
  std::optional<sizing::EnginePlan> engine;  // molly-engine's figures; nothing: planned at the start
  std::vector<std::string> further_arguments;
  bool operator==(const ModelPlan&) const = default;
};

// [models] of molly.toml.
struct SupervisorOptions {
  std::filesystem::path server;                    // llama-server's path
  std::filesystem::path engine;                    // molly-engine's path
  std::filesystem::path run_folder;                // <data>/run: sockets and key files
  std::filesystem::path log_folder;                // <data>/logs
  std::uint32_t threads = 0;                       // 0: the server's own choice
  std::uint64_t cache_bytes = 256ULL << 20;        // llama-server's prompt cache in host memory, counted for each model
  std::chrono::milliseconds start_limit{300'000};  // from spawn to the one-token probe
  std::chrono::milliseconds stop_step{2'000};      // between SIGTERM, SIGTERM and SIGKILL
  ScheduleOptions schedule;                        // memory, keep_alive, queue, fairness, backoff
};

// A running child, as its leases see it. Immutable but for `ended` and `loaded`.
struct RunningModel {
  std::string name;
  std::filesystem::path socket;  // the unix socket it listens on
  base::Secret key;              // "Authorization: Bearer KEY"
  pid_t pid = 0;
  std::atomic<bool> ended = false;  // the child is gone: connections to it are dead
  std::atomic<double> loaded = -1;  // share of the model that is loaded, while it starts; below 0: it does not say
};

// Keeps its model loaded; the slot is free again when the lease is destroyed (on any thread).
class Lease {
 public:
  Lease(Lease&&) noexcept = default;
  Lease& operator=(Lease&& other) noexcept;
  ~Lease();
  const RunningModel& model() const { return *model_; }

 private:
  friend class Supervisor;
  struct Core;
  Lease(std::shared_ptr<Core> core, std::shared_ptr<const RunningModel> model, std::uint64_t generation);
  void release() noexcept;
  std::shared_ptr<Core> core_;
  std::shared_ptr<const RunningModel> model_;
  std::uint64_t generation_ = 0;
};

struct ModelStatus {
  std::string name;
  ModelState state = ModelState::stopped;
  std::string reason;          // why it is in that state, for people: "idle for 10 minutes", "exited with code 1"
  std::uint32_t attempts = 0;  // failed starts in a row
  std::optional<std::chrono::milliseconds> retry_after;  // failed: until the next start is tried
  std::uint64_t memory_bytes = 0;                        // estimate
  std::uint32_t leases = 0;
  std::uint32_t waiting = 0;
  pid_t pid = 0;                 // 0: no child
  std::optional<double> loaded;  // starting: the share that is loaded, where the child says so
};

struct SupervisorStatus {
  std::uint64_t memory_budget = 0;
  std::uint64_t memory_used = 0;
  std::vector<ModelStatus> models;
};

// Thread-safe: every member may be called from any thread, but the awaitable ones must run on an executor of one
// thread (or a strand). Child processes and timers are driven on `executor`.
class Supervisor {
 public:
  Supervisor(boost::asio::any_io_executor executor, SupervisorOptions options, std::shared_ptr<ChildLauncher> launcher,
             std::shared_ptr<ChildProbe> probe);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // Takes over the children that an earlier control plane left with the parent: those of known models that answer
  // become ready, all others are stopped. Call it once, after the models were added and before serving.
  boost::asio::awaitable<Result<void>> adopt_children();

  // Reads the file's header (blocks on the disk); a model of that name is replaced: its child is drained and stopped
  // when the plan differs. Errors: ErrorCode::invalid_request when the file is no model or needs more than the
  // whole memory budget.
  Result<void> add_model(const ModelPlan& plan);
  // Drains and stops it; waiting requests fail with ErrorCode::not_found.
  void remove_model(std::string_view name);

  // Waits its turn until the model is loaded and a slot is free. Errors: not_found; unavailable with the reason and
  // retry_after (its last start failed); overloaded with retry_after (queue full); timeout at `deadline`.
  // A cancelled wait leaves nothing behind.
  boost::asio::awaitable<Result<Lease>> acquire(std::string model, std::chrono::steady_clock::time_point deadline);

  // Starts it now if memory allows (evicting idle ones), forgetting earlier failures, without waiting for it.
  Result<void> load(std::string_view name);
  // Stops it when its requests are done, at the latest after schedule.drain_limit.
  Result<void> unload(std::string_view name);

  // Gives out no more leases and starts nothing; children stay with the parent for the next control plane.
  void stop();

  SupervisorStatus status() const;
  // Of one model; nothing when it is not known. Cheap enough for every request.
  std::optional<ModelStatus> status(std::string_view name) const;

 private:
  std::shared_ptr<Lease::Core> core_;
};

}  // namespace molly::targets
