#include "targets/supervisor.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "targets/supervisor_core.h"

namespace molly::targets {

namespace asio = boost::asio;

namespace {

ModelStatus status_of(const ModelView& view, pid_t pid) {
  ModelStatus out{.name = view.name, .state = view.state, .reason = view.reason, .attempts = view.attempts};
  if (view.retry_at) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*view.retry_at - std::chrono::steady_clock::now());
    out.retry_after = std::max(left, std::chrono::milliseconds(0));
  }
  out.memory_bytes = view.bytes;
  out.leases = view.leases;
  out.waiting = view.waiting;
  out.pid = pid;
  return out;
}

}  // namespace

Lease::Lease(std::shared_ptr<Core> core, std::shared_ptr<const RunningModel> model, std::uint64_t generation)
    : core_(std::move(core)), model_(std::move(model)), generation_(generation) {}

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  release();
  core_ = std::move(other.core_);
  model_ = std::move(other.model_);
  generation_ = other.generation_;
  return *this;
}

Lease::~Lease() { release(); }

void Lease::release() noexcept {
  const auto core = std::move(core_);
  if (!core) return;
  const std::lock_guard lock(core->mutex);
  core->schedule.release(model_->name, generation_, std::chrono::steady_clock::now());
  if (!core->stopped) core->carry_out();
}

Supervisor::Supervisor(asio::any_io_executor executor, SupervisorOptions options, std::shared_ptr<ChildLauncher> launcher,
                       std::shared_ptr<ChildProbe> probe)
    : core_(std::make_shared<Lease::Core>(std::move(executor), std::move(options), std::move(launcher), std::move(probe))) {
  core_->launcher->on_exit([weak = std::weak_ptr(core_)](const base::ChildExit& exited) {
    if (const auto core = weak.lock()) core->child_exited(exited);
  });
}

Supervisor::~Supervisor() { stop(); }

asio::awaitable<Result<void>> Supervisor::adopt_children() {
  const auto core = core_;
  auto list = co_await core->launcher->list();
  if (!list) co_return std::unexpected(std::move(list.error()));
  for (base::Child& child : list->children) co_await core->adopt(std::move(child), list->predecessor_draining);
  co_return Result<void>{};
}

Result<void> Supervisor::add_model(ModelPlan plan) {
  auto prepared = prepare_plan(plan, core_->options);
  if (!prepared) return std::unexpected(std::move(prepared.error()));
  const std::lock_guard lock(core_->mutex);
  const auto known = core_->plans.find(plan.name);
  const bool changed = known != core_->plans.end() && known->second != *prepared;
  if (known != core_->plans.end() && !changed) return {};
  if (auto added = core_->schedule.add(plan.name, prepared->memory_bytes, prepared->plan.slots); !added) return added;
  core_->plans.insert_or_assign(plan.name, std::move(*prepared));
  if (changed) {
    static_cast<void>(core_->schedule.unload(plan.name, "its settings changed", std::chrono::steady_clock::now()));
    core_->carry_out();
  }
  return {};
}

void Supervisor::remove_model(std::string_view name) {
  const std::lock_guard lock(core_->mutex);
  core_->schedule.remove(name, std::chrono::steady_clock::now());
  if (const auto found = core_->plans.find(name); found != core_->plans.end()) core_->plans.erase(found);
  core_->carry_out();
}

asio::awaitable<Result<Lease>> Supervisor::acquire(std::string model, std::chrono::steady_clock::time_point deadline) {
  const auto core = core_;
  const auto waiter = std::make_shared<Lease::Core::Waiter>(co_await asio::this_coro::executor);
  TicketId ticket = 0;
  {
    const std::lock_guard lock(core->mutex);
    auto requested = core->schedule.request(model, std::chrono::steady_clock::now());
    if (!requested) co_return std::unexpected(std::move(requested.error()));
    ticket = *requested;
    core->waiters.emplace(ticket, waiter);
    waiter->timer.expires_at(deadline);
    core->carry_out();
  }
  // However this coroutine ends, the ticket does not outlive it.
  struct Cleanup {
    Lease::Core& core;
    TicketId ticket;
    ~Cleanup() {
      const std::lock_guard lock(core.mutex);
      if (core.waiters.erase(ticket) == 0) return;
      core.schedule.cancel(ticket);
      core.carry_out();
    }
  } const cleanup{*core, ticket};
  const auto taken = [&]() -> bool {
    const std::lock_guard lock(core->mutex);
    return waiter->outcome.has_value();
  };
  if (!taken()) co_await waiter->timer.async_wait(asio::as_tuple(asio::use_awaitable));
  if (taken()) co_return std::move(*waiter->outcome);
  co_return failure(ErrorCode::timeout, "waited too long for its turn");
}

Result<void> Supervisor::load(std::string_view name) {
  const std::lock_guard lock(core_->mutex);
  auto loading = core_->schedule.load(name, std::chrono::steady_clock::now());
  core_->carry_out();
  return loading;
}

Result<void> Supervisor::unload(std::string_view name) {
  const std::lock_guard lock(core_->mutex);
  auto unloading = core_->schedule.unload(name, "unloaded by hand", std::chrono::steady_clock::now());
  core_->carry_out();
  return unloading;
}

void Supervisor::stop() {
  const std::lock_guard lock(core_->mutex);
  if (std::exchange(core_->stopped, true)) return;
  core_->schedule.close();
  core_->carry_out();
  core_->timer.cancel();
}

SupervisorStatus Supervisor::status() const {
  const std::lock_guard lock(core_->mutex);
  SupervisorStatus out{.memory_budget = core_->schedule.memory_budget(), .memory_used = core_->schedule.memory_used(), .models = {}};
  for (const ModelView& view : core_->schedule.view()) {
    pid_t pid = 0;
    for (const auto& [generation, run] : core_->runs) {
      if (run.model == view.name) pid = run.running->pid;
    }
    out.models.push_back(status_of(view, pid));
  }
  return out;
}

std::optional<ModelStatus> Supervisor::status(std::string_view name) const {
  const std::lock_guard lock(core_->mutex);
  const auto view = core_->schedule.view(name);
  if (!view) return std::nullopt;
  return status_of(*view, 0);
}

}  // namespace molly::targets
