#include "targets/supervisor.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "targets/supervisor_core.h"

namespace molly::targets {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

ModelStatus status_of(const ModelView& view, TimePoint now) {
  ModelStatus status{.name = view.name,
                     .state = view.state,
                     .reason = view.reason,
                     .attempts = view.attempts,
                     .memory_bytes = view.bytes,
                     .leases = view.leases,
                     .waiting = view.waiting};
  if (view.retry_at) {
    status.retry_after = std::chrono::ceil<std::chrono::milliseconds>(std::max(*view.retry_at, now) - now);
  }
  return status;
}

void add_process(const RunningModel& running, ModelStatus& status) {
  status.pid = running.pid;
  const double loaded = running.loaded;
  if (status.state == ModelState::starting && loaded >= 0) status.loaded = loaded;
}

}  // namespace

Lease::Lease(std::shared_ptr<Core> core, std::shared_ptr<const RunningModel> model, std::uint64_t generation)
    : core_(std::move(core)), model_(std::move(model)), generation_(generation) {}

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this != &other) {
    release();
    core_ = std::move(other.core_);
    model_ = std::move(other.model_);
    generation_ = other.generation_;
  }
  return *this;
}

Lease::~Lease() { release(); }

void Lease::release() noexcept {
  if (const auto core = std::exchange(core_, nullptr)) core->release(model_->name, generation_);
}

Supervisor::Supervisor(asio::any_io_executor executor, SupervisorOptions options,
                       std::shared_ptr<ChildLauncher> launcher, std::shared_ptr<ChildProbe> probe)
    : core_(std::make_shared<Lease::Core>(std::move(executor), std::move(options), std::move(launcher),
                                          std::move(probe))) {
  core_->launcher->on_exit([weak = std::weak_ptr(core_)](base::ChildExit ended) {
    if (const auto core = weak.lock()) core->child_exited(ended);
  });
}

Supervisor::~Supervisor() { stop(); }

asio::awaitable<Result<void>> Supervisor::adopt_children() { return core_->adopt(); }

Result<void> Supervisor::add_model(const ModelPlan& plan) {
  auto prepared = prepare_plan(plan, core_->options);
  if (!prepared) return std::unexpected(prepared.error());
  {
    const std::lock_guard lock(core_->mutex);
    const auto known = core_->plans.find(plan.name);
    if (known != core_->plans.end() && known->second == *prepared) return {};
    auto added = core_->schedule.add(plan.name, prepared->memory_bytes, std::max(prepared->plan.slots, 1U));
    if (!added) return added;
    // What runs under the old plan makes way; who waits for the model gets the new one.
    if (known != core_->plans.end()) {
      std::ignore = core_->schedule.unload(plan.name, "its configuration changed", Clock::now());
    }
    core_->plans.insert_or_assign(plan.name, *std::move(prepared));
  }
  core_->pump();
  return {};
}

void Supervisor::remove_model(std::string_view name) {
  {
    const std::lock_guard lock(core_->mutex);
    core_->schedule.remove(name, Clock::now());
    if (const auto known = core_->plans.find(name); known != core_->plans.end()) core_->plans.erase(known);
  }
  core_->pump();
}

asio::awaitable<Result<Lease>> Supervisor::acquire(std::string model, TimePoint deadline) {
  const auto core = core_;
  const auto waiter = std::make_shared<LeaseWaiter>(co_await asio::this_coro::executor, deadline);
  TicketId ticket = 0;
  {
    const std::lock_guard lock(core->mutex);
    auto requested = core->schedule.request(model, Clock::now());
    if (!requested) co_return std::unexpected(std::move(requested.error()));
    ticket = *requested;
    core->waiters.emplace(ticket, waiter);
  }
  // However this coroutine ends, also when it is destroyed while it waits, nothing stays in the queue.
  struct Leave {
    Lease::Core& core;
    TicketId ticket;
    ~Leave() { core.forget_waiter(ticket); }
  } leave{*core, ticket};
  core->pump();
  while (true) {
    {
      const std::lock_guard lock(core->mutex);
      if (waiter->outcome) co_return *std::exchange(waiter->outcome, std::nullopt);
    }
    if (Clock::now() >= deadline) {
      co_return failure(ErrorCode::timeout, "the model " + model + " did not become free in time");
    }
    const auto state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() != asio::cancellation_type::none) {
      co_return failure(ErrorCode::cancelled, "the request left while it waited for a model");
    }
    co_await waiter->timer.async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

Result<void> Supervisor::load(std::string_view name) {
  Result<void> done;
  {
    const std::lock_guard lock(core_->mutex);
    done = core_->schedule.load(name, Clock::now());
  }
  core_->pump();
  return done;
}

Result<void> Supervisor::unload(std::string_view name) {
  Result<void> done;
  {
    const std::lock_guard lock(core_->mutex);
    done = core_->schedule.unload(name, "unloaded on request", Clock::now());
  }
  core_->pump();
  return done;
}

void Supervisor::stop() { core_->close(); }

SupervisorStatus Supervisor::status() const {
  const std::lock_guard lock(core_->mutex);
  SupervisorStatus status{.memory_budget = core_->schedule.memory_budget(),
                          .memory_used = core_->schedule.memory_used()};
  for (const auto& view : core_->schedule.view()) {
    status.models.push_back(status_of(view, Clock::now()));
    const auto run = core_->runs.find(view.generation);
    if (run != core_->runs.end() && run->second->running) add_process(*run->second->running, status.models.back());
  }
  return status;
}

std::optional<ModelStatus> Supervisor::status(std::string_view name) const {
  const std::lock_guard lock(core_->mutex);
  const auto view = core_->schedule.view(name);
  if (!view) return std::nullopt;
  ModelStatus status = status_of(*view, Clock::now());
  const auto run = core_->runs.find(view->generation);
  if (run != core_->runs.end() && run->second->running) add_process(*run->second->running, status);
  return status;
}

}  // namespace molly::targets
