#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "targets/supervisor.h"
#include "targets/supervisor_plan.h"

namespace molly::targets {

// What a supervisor and its leases share. The schedule decides; this carries its decisions out.
// `mutex` guards everything below it; coroutines run on `executor` and never hold it across a co_await.
struct Lease::Core : std::enable_shared_from_this<Lease::Core> {
  // A request that waits for its lease, on its own thread.
  struct Waiter {
    explicit Waiter(const boost::asio::any_io_executor& own_executor) : executor(own_executor), timer(own_executor) {}
    boost::asio::any_io_executor executor;
    boost::asio::steady_timer timer;  // touched on the waiter's own thread only
    std::optional<Result<Lease>> outcome;
  };

  // One run of one child.
  struct Run {
    std::string model;
    ChildFiles files;
    std::shared_ptr<RunningModel> running;
    std::optional<base::ChildId> id;  // nothing: the parent has not answered yet
    bool stopping = false;
  };

  Core(boost::asio::any_io_executor on, SupervisorOptions with, std::shared_ptr<ChildLauncher> by,
       std::shared_ptr<ChildProbe> asking);

  // Asks the schedule what is to be done and does it. With the mutex held.
  void carry_out();
  void grant(const GrantTicket& granted);
  void fail(FailTicket failed);
  void hand_over(TicketId ticket, Result<Lease> outcome);
  void start(const StartModel& wanted);
  void arm_timer();

  void child_exited(const base::ChildExit& exited);
  void gone(Generation generation, const std::string& reason);
  Run* run_of(Generation generation);
  std::optional<base::ChildId> child_of(Generation generation);

  boost::asio::awaitable<void> run_child(Generation generation, PreparedPlan prepared);
  boost::asio::awaitable<Result<void>> spawn_child(Generation generation, const PreparedPlan& prepared);
  boost::asio::awaitable<Result<void>> wait_until_ready(Generation generation);
  boost::asio::awaitable<void> stop_child(Generation generation);
  boost::asio::awaitable<void> stop_stranger(base::ChildId id);
  boost::asio::awaitable<void> adopt(base::Child child, bool predecessor_draining);
  boost::asio::awaitable<void> pause(std::chrono::milliseconds time);

  const boost::asio::any_io_executor executor;
  const SupervisorOptions options;
  const std::shared_ptr<ChildLauncher> launcher;
  const std::shared_ptr<ChildProbe> probe;

  mutable std::mutex mutex;
  ModelSchedule schedule;
  std::map<std::string, PreparedPlan, std::less<>> plans;
  std::map<Generation, Run> runs;
  std::map<TicketId, std::shared_ptr<Waiter>> waiters;
  boost::asio::steady_timer timer;  // for the schedule's next decision; on `executor` only
  bool stopped = false;
};

}  // namespace molly::targets
