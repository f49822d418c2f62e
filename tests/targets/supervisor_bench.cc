#include "supervisor_bench.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <csignal>
#include <fstream>
#include <stdexcept>

#include "../gguf/file_writer.h"
#include "base/os/process.h"
#include "targets/supervisor_plan.h"

namespace molly::targets {
namespace asio = boost::asio;
using namespace std::chrono_literals;

OwnLauncher::~OwnLauncher() {
  for (const auto& [id, child] : children_) {
    ::kill(child.pid, SIGKILL);
    ::waitpid(child.pid, nullptr, 0);
  }
}

asio::awaitable<Result<base::Child>> OwnLauncher::spawn(base::SpawnRequest request) {
  if (!refusal_.empty()) co_return failure(ErrorCode::io_failed, refusal_);
  const base::FileDescriptor log(::open(request.log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  const auto pid = base::spawn_process({.arguments = request.arguments,
                                        .environment = request.environment,
                                        .descriptors = {{log.get(), 1}, {log.get(), 2}},
                                        .own_session = true});
  if (!pid) co_return std::unexpected(pid.error());
  const base::Child child{++last_, *pid, request.blob};
  children_.emplace(child.id, child);
  most_alive_ = std::max(most_alive_, children_.size());
  co_return child;
}

asio::awaitable<Result<void>> OwnLauncher::signal(base::ChildId id, int signal_number) {
  const auto found = children_.find(id);
  if (found == children_.end()) co_return failure(ErrorCode::io_failed, "that model process has ended");
  ::kill(found->second.pid, signal_number);
  co_return Result<void>{};
}

asio::awaitable<Result<base::ChildList>> OwnLauncher::list() {
  base::ChildList list;
  for (const auto& [id, child] : children_) list.children.push_back(child);
  co_return list;
}

void OwnLauncher::reap() {
  while (const auto ended = base::reap_child()) {
    const auto found = std::ranges::find(children_, ended->pid, [](const auto& entry) { return entry.second.pid; });
    if (found == children_.end()) continue;
    const base::ChildExit exit{found->first, ended->status};
    children_.erase(found);
    if (callback_) callback_(exit);
  }
}

SupervisorBench::SupervisorBench(Setup setup) : setup_(std::move(setup)) {
  std::string name = "/tmp/molly-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder");
  folder = name;
  model_ = setup_.model;
  if (model_.empty()) {
    model_ = folder / "small.gguf";
    const auto bytes = gguf::small_model().bytes();
    std::ofstream(model_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  launcher = std::make_shared<OwnLauncher>();
  supervisor = std::make_unique<Supervisor>(context.get_executor(), options(), launcher, make_child_probe(context));
}

SupervisorBench::~SupervisorBench() {
  supervisor.reset();
  context.poll();
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

SupervisorOptions SupervisorBench::options() {
  SupervisorOptions options{.server = setup_.server.empty() ? *base::own_program() : setup_.server,
                            .engine = setup_.server,
                            .run_folder = folder / "run",
                            .log_folder = folder / "logs",
                            .threads = 1,
                            .cache_bytes = 0,
                            .start_limit = setup_.start_limit,
                            .stop_step = 200ms,
                            .schedule = setup_.schedule};
  const auto prepared = prepare_plan({.name = "any", .file = model_, .server = setup_.kind}, options);
  if (!prepared) throw std::runtime_error(prepared.error().message);
  options.schedule.memory_budget = prepared->memory_bytes * setup_.models_in_memory;
  return options;
}

void SupervisorBench::add(const std::string& name, std::vector<std::string> further_arguments) {
  ModelPlan plan{
      .name = name, .file = model_, .server = setup_.kind, .further_arguments = std::move(further_arguments)};
  if (auto added = supervisor->add_model(plan); !added) throw std::runtime_error(added.error().message);
  plans_.push_back(std::move(plan));
}

void SupervisorBench::restart_supervisor() {
  supervisor.reset();
  context.restart();
  context.poll();
  supervisor = std::make_unique<Supervisor>(context.get_executor(), options(), launcher, make_child_probe(context));
  for (const auto& plan : plans_) {
    if (auto added = supervisor->add_model(plan); !added) throw std::runtime_error(added.error().message);
  }
  auto adopted = asio::co_spawn(context, supervisor->adopt_children(), asio::use_future);
  run_until([&] { return adopted.wait_for(0s) == std::future_status::ready; });
}

std::future<Result<Lease>> SupervisorBench::start_acquire(const std::string& model,
                                                          std::chrono::milliseconds patience) {
  // Result<Lease> has no default: the coroutine hands it over through a promise of its own.
  auto promise = std::make_shared<std::promise<Result<Lease>>>();
  auto future = promise->get_future();
  asio::co_spawn(
      context,
      [this, promise, model, patience]() -> asio::awaitable<void> {
        promise->set_value(co_await supervisor->acquire(model, std::chrono::steady_clock::now() + patience));
      },
      [](const std::exception_ptr&) {});
  run_for(0ms);
  return future;
}

Result<Lease> SupervisorBench::wait_for(std::future<Result<Lease>>& future) {
  if (!run_until([&] { return future.wait_for(0s) == std::future_status::ready; })) {
    return failure(ErrorCode::internal, "it never ended");
  }
  return future.get();
}

Result<Lease> SupervisorBench::acquire(const std::string& model, std::chrono::milliseconds patience) {
  auto future = start_acquire(model, patience);
  return wait_for(future);
}

bool SupervisorBench::run_until(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    run_for(2ms);
  }
  return true;
}

void SupervisorBench::run_for(std::chrono::milliseconds time) {
  context.restart();
  if (time == 0ms) {
    context.poll();
  } else {
    const auto work = asio::make_work_guard(context);  // else it returns as soon as nothing is to be done
    context.run_for(time);
  }
  launcher->reap();
}

bool SupervisorBench::no_process_left() {
  return run_until([&] { return launcher->alive() == 0 && supervisor->status().memory_used == 0; }) &&
         ::waitpid(-1, nullptr, WNOHANG) < 0;
}

}  // namespace molly::targets
