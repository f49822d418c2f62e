#include <spdlog/spdlog.h>
#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>

#include "base/os/file.h"
#include "base/os/process.h"
#include "targets/supervisor_core.h"

// The life of one child: started, asked until it answers, watched, stopped.
namespace molly::targets {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

namespace {

constexpr auto as_result = asio::as_tuple(asio::use_awaitable);
constexpr milliseconds first_health_pause{20};
constexpr milliseconds longest_health_pause{250};
constexpr std::uint64_t longest_key = 4096;
constexpr std::size_t most_unclaimed_exits = 256;

Error while_starting(const std::string& what, const std::filesystem::path& log) {
  return {ErrorCode::unavailable, what + " while starting; its log is " + log.string(), {}};
}

}  // namespace

asio::awaitable<void> Lease::Core::serve(std::shared_ptr<ChildRun> run) {
  const auto self = shared_from_this();
  const TimePoint began = Clock::now();
  const auto up = co_await bring_up(*run);
  if (!up) {
    want_stop(run);
  } else if (!run->exit_status && !run->stop_wanted) {
    spdlog::info("model {}: ready after {} ms (process {})", run->model,
                 std::chrono::duration_cast<milliseconds>(Clock::now() - began).count(), run->running->pid);
    {
      const std::lock_guard lock(mutex);
      schedule.child_ready(run->model, run->generation, Clock::now());
    }
    pump();
  }
  while (run->child != 0 && !run->exit_status && !closed_) co_await wait_for_change(*run, milliseconds::max());
  if (closed_) co_return;  // the child stays with the parent, for the next control plane
  finish(*run, up ? base::describe_exit(run->exit_status.value_or(0)) : up.error().message);
}

void Lease::Core::finish(ChildRun& run, const std::string& reason) {
  spdlog::info("model {}: stopped ({})", run.model, reason);
  if (run.running) run.running->ended = true;
  remove_child_files(run.files);
  std::shared_ptr<ChildRun> kept;
  {
    const std::lock_guard lock(mutex);
    schedule.child_gone(run.model, run.generation, reason, Clock::now());
    if (const auto found = runs.find(run.generation); found != runs.end()) {
      kept = std::move(found->second);
      runs.erase(found);
    }
  }
  pump();
}

asio::awaitable<Result<void>> Lease::Core::bring_up(ChildRun& run) {
  const bool adopted = run.child != 0;
  if (!adopted) {
    if (auto started = co_await start_child(run); !started) co_return started;
  }
  if (auto healthy = co_await wait_until_healthy(run); !healthy) co_return healthy;
  if (adopted) co_return Result<void>{};
  auto answered = co_await probe->one_token(run.files.socket, run.running->key);
  if (!answered)
    answered = std::unexpected(while_starting(answered.error().message, child_log(options.log_folder, run.model)));
  co_return answered;
}

asio::awaitable<Result<void>> Lease::Core::start_child(ChildRun& run) {
  if (auto folder = base::make_private_folder(options.run_folder); !folder) co_return folder;
  if (auto folder = base::make_private_folder(options.log_folder); !folder) co_return folder;
  run.files = new_child_files(options.run_folder);
  base::Secret key = new_child_key();
  if (auto kept = base::write_file_atomically(run.files.key, key.reveal(), base::Durability::kernel); !kept)
    co_return kept;
  ::unlink(run.files.socket.c_str());
  auto child =
      co_await launcher->spawn({.arguments = child_arguments(run.prepared, options, run.files),
                                .environment = child_environment(),
                                .log_path = child_log(options.log_folder, run.model).string(),
                                .blob = write_memo({run.model, run.files, plan_fingerprint(run.prepared, options)})});
  --spawns_waiting_;
  if (!child) co_return std::unexpected(child.error());
  const auto running = std::make_shared<RunningModel>();
  running->name = run.model;
  running->socket = run.files.socket;
  running->key = std::move(key);
  running->pid = child->pid;
  run.child = child->id;
  {
    const std::lock_guard lock(mutex);  // status() reads it
    run.running = running;
  }
  // The exit may have been told before this coroutine went on.
  if (const auto early = unclaimed_exits_.find(run.child); early != unclaimed_exits_.end()) {
    run.exit_status = early->second;
  }
  if (spawns_waiting_ == 0) unclaimed_exits_.clear();
  co_return Result<void>{};
}

asio::awaitable<Result<void>> Lease::Core::wait_until_healthy(ChildRun& run) {
  const auto log = child_log(options.log_folder, run.model);
  const TimePoint deadline = Clock::now() + options.start_limit;
  milliseconds pause = first_health_pause;
  while (true) {
    if (run.exit_status) co_return std::unexpected(while_starting(base::describe_exit(*run.exit_status), log));
    if (run.stop_wanted || closed_) co_return failure(ErrorCode::cancelled, "stopped while starting");
    const ChildHealth health = co_await probe->health(run.files.socket);
    if (health.ready) co_return Result<void>{};
    if (health.loaded) run.running->loaded = *health.loaded;
    if (Clock::now() >= deadline) co_return std::unexpected(while_starting("did not become ready in time", log));
    if (!run.exit_status && !run.stop_wanted) co_await wait_for_change(run, pause);
    pause = std::min(pause * 2, longest_health_pause);
  }
}

asio::awaitable<void> Lease::Core::wait_for_change(ChildRun& run, milliseconds at_most) {
  if (at_most == milliseconds::max()) {
    run.changed.expires_at(TimePoint::max());
  } else {
    run.changed.expires_after(at_most);
  }
  co_await run.changed.async_wait(as_result);
}

void Lease::Core::want_stop(const std::shared_ptr<ChildRun>& run) {
  run->stop_wanted = true;
  run->changed.cancel();
  if (run->stopping || run->child == 0 || run->exit_status) return;
  run->stopping = true;
  asio::co_spawn(executor, stop_child(run), asio::detached);
}

// llama-server with an open stream ignores the first SIGTERM and obeys the second; SIGKILL ends what ignores both.
// The last one is repeated: the message to the parent may have been lost in a crash of ours.
asio::awaitable<void> Lease::Core::stop_child(std::shared_ptr<ChildRun> run) {
  const auto self = shared_from_this();
  asio::steady_timer step(executor);
  for (int sent = 0; !run->exit_status && !closed_; ++sent) {
    std::ignore = co_await launcher->signal(run->child, sent < 2 ? SIGTERM : SIGKILL);
    const TimePoint next = Clock::now() + options.stop_step;
    while (!run->exit_status && !closed_ && Clock::now() < next) {
      step.expires_at(std::min(next, Clock::now() + milliseconds(50)));
      co_await step.async_wait(as_result);
    }
  }
}

asio::awaitable<void> Lease::Core::stop_stranger(base::ChildId child) {
  const auto self = shared_from_this();
  asio::steady_timer step(executor);
  for (const int number : {SIGTERM, SIGTERM, SIGKILL}) {
    if (auto told = co_await launcher->signal(child, number); !told || closed_) co_return;
    step.expires_after(options.stop_step);
    co_await step.async_wait(as_result);
  }
}

void Lease::Core::child_exited(base::ChildExit ended) {
  std::shared_ptr<ChildRun> run;
  {
    const std::lock_guard lock(mutex);
    for (const auto& [generation, candidate] : runs) {
      if (candidate->child == ended.id) run = candidate;
    }
  }
  if (!run) {
    if (spawns_waiting_ > 0 && unclaimed_exits_.size() < most_unclaimed_exits)
      unclaimed_exits_.emplace(ended.id, ended.status);
    return;
  }
  run->exit_status = ended.status;
  if (run->running) run->running->ended = true;
  run->changed.cancel();
}

asio::awaitable<Result<void>> Lease::Core::adopt() {
  const auto self = shared_from_this();
  auto list = co_await launcher->list();
  if (!list) co_return std::unexpected(list.error());
  const TimePoint protected_until =
      Clock::now() + (list->predecessor_draining ? options.schedule.drain_limit : milliseconds(0));
  for (const auto& child : list->children) {
    if (adopt_child(child, protected_until)) continue;
    spdlog::info("stopping a model process that nobody needs any more (process {})", child.pid);
    asio::co_spawn(executor, stop_stranger(child.id), asio::detached);
  }
  if (list->children.empty() && !list->predecessor_draining) remove_leftovers();
  co_return Result<void>{};
}

bool Lease::Core::adopt_child(const base::Child& child, TimePoint protected_until) {
  const auto memo = read_memo(child.blob);
  if (!memo) return false;
  auto key = base::read_file(memo->files.key, longest_key);
  if (!key) return false;
  const std::lock_guard lock(mutex);
  const auto plan = plans.find(memo->model);
  if (plan == plans.end() || plan_fingerprint(plan->second, options) != memo->plan) return false;
  const auto generation = schedule.adopt(memo->model, protected_until);
  if (!generation) return false;
  const auto run = make_run(memo->model, *generation);
  run->files = memo->files;
  run->child = child.id;
  run->running = std::make_shared<RunningModel>();
  run->running->name = memo->model;
  run->running->socket = memo->files.socket;
  run->running->key = base::Secret::take(*key);
  run->running->pid = child.pid;
  asio::co_spawn(executor, serve(run), asio::detached);
  return true;
}

// Sockets and keys of children that died together with everything else.
void Lease::Core::remove_leftovers() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(options.run_folder, error)) {
    std::error_code ignored;
    if (is_child_file(entry.path())) std::filesystem::remove(entry.path(), ignored);
  }
}

}  // namespace molly::targets
