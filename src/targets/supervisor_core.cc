#include "targets/supervisor_core.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>

namespace molly::targets {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

Lease::Core::Core(asio::any_io_executor executor_, SupervisorOptions options_, std::shared_ptr<ChildLauncher> launcher_,
                  std::shared_ptr<ChildProbe> probe_)
    : executor(std::move(executor_)),
      options(std::move(options_)),
      launcher(std::move(launcher_)),
      probe(std::move(probe_)),
      schedule(options.schedule),
      wake_(executor) {}

void Lease::Core::pump() {
  const std::lock_guard lock(mutex);
  const TimePoint now = Clock::now();
  for (const auto& action : schedule.decide(now)) carry_out(action);
  const auto next = schedule.next_decision(now);
  // A timer that rings too early only decides once more; one that rings too late must be set anew.
  if (closed_ || !next || (wake_at_ && *wake_at_ <= *next)) return;
  wake_at_ = next;
  asio::post(executor, [self = shared_from_this()] { self->arm_timer(); });
}

// Never runs the coroutine at once: the mutex is held here, and it takes it.
void Lease::Core::launch(asio::awaitable<void> coroutine) {
  asio::post(executor, [self = shared_from_this(), coroutine = std::move(coroutine)]() mutable {
    asio::co_spawn(self->executor, std::move(coroutine), asio::detached);
  });
}

void Lease::Core::arm_timer() {
  {
    const std::lock_guard lock(mutex);
    if (closed_ || !wake_at_) return;
    wake_.expires_at(*wake_at_);
  }
  wake_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
    const auto self = weak.lock();
    if (error || !self) return;
    {
      const std::lock_guard lock(self->mutex);
      self->wake_at_.reset();
    }
    self->pump();
  });
}

// With the mutex held; posts keep the order in which the schedule decided.
void Lease::Core::carry_out(const Action& action) {
  if (const auto* grant = std::get_if<GrantTicket>(&action)) {
    const auto& run = runs.at(grant->generation);
    deliver(grant->ticket, Lease(shared_from_this(), run->running, grant->generation));
  } else if (const auto* fail = std::get_if<FailTicket>(&action)) {
    deliver(fail->ticket, std::unexpected(fail->error));
  } else if (const auto* start = std::get_if<StartModel>(&action)) {
    auto run = make_run(start->model, start->generation);
    asio::post(executor,
               [self = shared_from_this(), run] { asio::co_spawn(self->executor, self->serve(run), asio::detached); });
  } else if (const auto* stop = std::get_if<StopModel>(&action)) {
    asio::post(executor, [self = shared_from_this(), run = runs.at(stop->generation)] { self->want_stop(run); });
  }
}

// With the mutex held. A waiter leaves the schedule and this map in one step, so it is always found.
void Lease::Core::deliver(TicketId ticket, Result<Lease> outcome) {
  const auto found = waiters.find(ticket);
  if (found == waiters.end()) return;
  const auto waiter = found->second;
  waiter->outcome.emplace(std::move(outcome));
  asio::post(waiter->timer.get_executor(), [waiter] { waiter->timer.cancel(); });
}

std::shared_ptr<ChildRun> Lease::Core::make_run(const std::string& model, Generation generation) {
  auto run = std::make_shared<ChildRun>(executor, model, generation);
  if (const auto plan = plans.find(model); plan != plans.end()) run->prepared = plan->second;
  runs.emplace(generation, run);
  return run;
}

void Lease::Core::release(const std::string& model, Generation generation) noexcept {
  {
    const std::lock_guard lock(mutex);
    schedule.release(model, generation, Clock::now());
  }
  pump();
}

void Lease::Core::forget_waiter(TicketId ticket) {
  std::shared_ptr<LeaseWaiter> waiter;
  std::optional<Result<Lease>> unused;  // dies after the lock: releasing a lease takes it again
  {
    const std::lock_guard lock(mutex);
    schedule.cancel(ticket);
    const auto found = waiters.find(ticket);
    if (found == waiters.end()) return;
    waiter = std::move(found->second);
    unused = std::exchange(waiter->outcome, std::nullopt);
    waiters.erase(found);
  }
  waiter->timer.cancel();
}

void Lease::Core::close() {
  {
    const std::lock_guard lock(mutex);
    if (closed_.exchange(true)) return;
    schedule.close();
  }
  pump();
  asio::post(executor, [self = shared_from_this()] {
    self->wake_.cancel();
    const std::lock_guard lock(self->mutex);
    for (auto& [generation, run] : self->runs) run->changed.cancel();
  });
}

}  // namespace molly::targets
