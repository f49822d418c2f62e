#include "targets/supervisor_core.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>

#include "base/os/file.h"
#include "base/os/process.h"

namespace molly::targets {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::milliseconds first_poll{10};
constexpr std::chrono::milliseconds slowest_poll{250};
constexpr std::chrono::milliseconds exit_poll{20};
constexpr std::chrono::seconds adopted_protection{60};

void remove_files(const ChildFiles& files) {
  std::error_code ignored;
  std::filesystem::remove(files.socket, ignored);
  std::filesystem::remove(files.key, ignored);
}

}  // namespace

Lease::Core::Core(asio::any_io_executor on, SupervisorOptions with, std::shared_ptr<ChildLauncher> by,
                  std::shared_ptr<ChildProbe> asking)
    : executor(std::move(on)),
      options(std::move(with)),
      launcher(std::move(by)),
      probe(std::move(asking)),
      schedule(options.schedule),
      timer(executor) {}

void Lease::Core::carry_out() {
  for (Action& action : schedule.decide(std::chrono::steady_clock::now())) {
    if (const auto* wanted = std::get_if<StartModel>(&action)) start(*wanted);
    if (const auto* unwanted = std::get_if<StopModel>(&action)) {
      asio::co_spawn(executor, stop_child(unwanted->generation), asio::detached);
    }
    if (const auto* granted = std::get_if<GrantTicket>(&action)) grant(*granted);
    if (auto* failed = std::get_if<FailTicket>(&action)) fail(std::move(*failed));
  }
  arm_timer();
}

void Lease::Core::arm_timer() {
  const auto next = schedule.next_decision(std::chrono::steady_clock::now());
  if (!next || stopped) return;
  asio::post(executor, [self = shared_from_this(), at = *next] {
    self->timer.expires_at(at);
    self->timer.async_wait([self](boost::system::error_code cancelled) {
      if (cancelled) return;
      const std::lock_guard lock(self->mutex);
      self->carry_out();
    });
  });
}

void Lease::Core::grant(const GrantTicket& granted) {
  Run* run = run_of(granted.generation);
  if (run == nullptr) {
    schedule.release(granted.model, granted.generation, std::chrono::steady_clock::now());
    return hand_over(granted.ticket, failure(ErrorCode::unavailable, "its process ended a moment ago"));
  }
  hand_over(granted.ticket, Lease(shared_from_this(), run->running, granted.generation));
}

void Lease::Core::fail(FailTicket failed) { hand_over(failed.ticket, std::unexpected(std::move(failed.error))); }

void Lease::Core::hand_over(TicketId ticket, Result<Lease> outcome) {
  const auto found = waiters.find(ticket);
  if (found == waiters.end()) {
    // Nobody waits any more: a lease that dies here would take the mutex again, so it goes elsewhere to die.
    asio::post(executor, [outcome = std::make_shared<Result<Lease>>(std::move(outcome))] {});
    return;
  }
  const auto waiter = found->second;
  waiters.erase(found);
  waiter->outcome = std::move(outcome);
  asio::post(waiter->executor, [waiter] { waiter->timer.cancel(); });
}

Lease::Core::Run* Lease::Core::run_of(Generation generation) {
  const auto found = runs.find(generation);
  return found == runs.end() ? nullptr : &found->second;
}

std::optional<base::ChildId> Lease::Core::child_of(Generation generation) {
  const std::lock_guard lock(mutex);
  const Run* run = run_of(generation);
  return run == nullptr ? std::nullopt : run->id;
}

void Lease::Core::start(const StartModel& wanted) {
  const auto plan = plans.find(wanted.model);
  if (plan == plans.end()) {
    schedule.child_gone(wanted.model, wanted.generation, "its plan is gone", std::chrono::steady_clock::now());
    return;
  }
  Run run{.model = wanted.model, .files = new_child_files(options.run_folder), .running = std::make_shared<RunningModel>(), .id = {}};
  run.running->name = wanted.model;
  run.running->socket = run.files.socket;
  run.running->key = new_child_key();
  runs.emplace(wanted.generation, std::move(run));
  asio::co_spawn(executor, run_child(wanted.generation, plan->second), asio::detached);
}

asio::awaitable<void> Lease::Core::pause(std::chrono::milliseconds time) {
  asio::steady_timer wait(executor, time);
  co_await wait.async_wait(asio::as_tuple(asio::use_awaitable));
}

asio::awaitable<void> Lease::Core::run_child(Generation generation, PreparedPlan prepared) {
  const auto self = shared_from_this();
  auto begun = co_await spawn_child(generation, prepared);
  if (!begun) {
    const std::lock_guard lock(mutex);
    gone(generation, begun.error().message);
    co_return;
  }
  const auto ready = co_await wait_until_ready(generation);
  if (!ready) {
    // Its exit is what frees the memory, so the schedule hears of the failure then.
    if (const auto id = child_of(generation)) static_cast<void>(co_await launcher->signal(*id, SIGKILL));
    co_return;
  }
  const std::lock_guard lock(mutex);
  if (Run* run = run_of(generation)) {
    schedule.child_ready(run->model, generation, std::chrono::steady_clock::now());
    carry_out();
  }
}

asio::awaitable<Result<void>> Lease::Core::spawn_child(Generation generation, const PreparedPlan& prepared) {
  ChildFiles files;
  base::Secret key;
  {
    const std::lock_guard lock(mutex);
    files = run_of(generation)->files;
    key = run_of(generation)->running->key;
  }
  std::error_code ignored;
  std::filesystem::remove(files.socket, ignored);
  if (auto written = base::write_file_atomically(files.key, key.reveal(), base::Durability::kernel); !written) {
    co_return written;
  }
  base::SpawnRequest request;
  request.arguments = child_arguments(prepared, options, files);
  request.environment = child_environment();
  request.log_path = child_log(options.log_folder, prepared.plan.name).string();
  request.blob = write_memo({.model = prepared.plan.name, .files = files, .plan = plan_fingerprint(prepared, options)});
  auto child = co_await launcher->spawn(std::move(request));
  if (!child) co_return std::unexpected(std::move(child.error()));
  const std::lock_guard lock(mutex);
  Run* run = run_of(generation);
  run->id = child->id;
  run->running->pid = child->pid;
  co_return Result<void>{};
}

asio::awaitable<Result<void>> Lease::Core::wait_until_ready(Generation generation) {
  const auto give_up = std::chrono::steady_clock::now() + options.start_limit;
  std::shared_ptr<RunningModel> running;
  {
    const std::lock_guard lock(mutex);
    Run* run = run_of(generation);
    if (run == nullptr) co_return failure(ErrorCode::unavailable, "it ended before it was ready");
    running = run->running;
  }
  auto poll = first_poll;
  while (!running->ended) {
    if (co_await probe->health(running->socket) == ChildHealth::ready) {
      co_return co_await probe->one_token(running->socket, running->key);
    }
    if (std::chrono::steady_clock::now() > give_up) co_return failure(ErrorCode::timeout, "it was not ready in time");
    co_await pause(poll);
    poll = std::min(poll * 2, slowest_poll);
  }
  co_return failure(ErrorCode::unavailable, "it ended before it was ready");
}

// llama-server ends at the first SIGTERM when idle, at the second with an open stream, and always at SIGKILL.
asio::awaitable<void> Lease::Core::stop_child(Generation generation) {
  const auto self = shared_from_this();
  {
    const std::lock_guard lock(mutex);
    Run* run = run_of(generation);
    if (run == nullptr || std::exchange(run->stopping, true)) co_return;
  }
  for (const int signal : {SIGTERM, SIGTERM, SIGKILL}) {
    const auto until = std::chrono::steady_clock::now() + options.stop_step;
    bool sent = false;
    do {
      {
        const std::lock_guard lock(mutex);
        if (run_of(generation) == nullptr) co_return;
      }
      const auto id = child_of(generation);
      if (id && !std::exchange(sent, true)) static_cast<void>(co_await launcher->signal(*id, signal));
      co_await pause(exit_poll);
    } while (!sent || std::chrono::steady_clock::now() < until);
  }
}

asio::awaitable<void> Lease::Core::stop_stranger(base::ChildId id) {
  const auto self = shared_from_this();
  for (const int signal : {SIGTERM, SIGTERM, SIGKILL}) {
    if (!co_await launcher->signal(id, signal)) co_return;
    co_await pause(options.stop_step);
  }
}

void Lease::Core::child_exited(const base::ChildExit& exited) {
  const std::lock_guard lock(mutex);
  for (const auto& [generation, run] : runs) {
    if (run.id != exited.id) continue;
    return gone(generation, base::describe_exit(exited.status));
  }
}

void Lease::Core::gone(Generation generation, const std::string& reason) {
  const auto found = runs.find(generation);
  if (found == runs.end()) return;
  const Run run = std::move(found->second);
  runs.erase(found);
  run.running->ended = true;
  remove_files(run.files);
  schedule.child_gone(run.model, generation, reason, std::chrono::steady_clock::now());
  if (!stopped) carry_out();
}

asio::awaitable<void> Lease::Core::adopt(base::Child child, bool predecessor_draining) {
  const auto self = shared_from_this();
  const auto memo = read_memo(child.blob);
  std::optional<Generation> generation;
  std::shared_ptr<RunningModel> running;
  if (memo) {
    const auto key = base::read_file(memo->files.key, 4096);
    const std::lock_guard lock(mutex);
    const auto plan = plans.find(memo->model);
    if (key && plan != plans.end() && plan_fingerprint(plan->second, options) == memo->plan) {
      const auto now = std::chrono::steady_clock::now();
      generation = schedule.adopt(memo->model, predecessor_draining ? now + adopted_protection : now);
      running = std::make_shared<RunningModel>();
      running->name = memo->model;
      running->socket = memo->files.socket;
      running->key = base::Secret(*key);
      running->pid = child.pid;
    }
    if (generation) runs.emplace(*generation, Run{.model = memo->model, .files = memo->files, .running = running, .id = child.id});
  }
  if (!generation) co_return asio::co_spawn(executor, stop_stranger(child.id), asio::detached);
  const auto ready = co_await wait_until_ready(*generation);
  if (!ready) {
    static_cast<void>(co_await launcher->signal(child.id, SIGKILL));
    co_return;
  }
  const std::lock_guard lock(mutex);
  schedule.child_ready(running->name, *generation, std::chrono::steady_clock::now());
  carry_out();
}

}  // namespace molly::targets
