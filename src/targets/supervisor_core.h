#pragma once

#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <mutex>

#include "targets/supervisor.h"
#include "targets/supervisor_plan.h"

namespace molly::targets {

// One request that waits for a lease, on its own thread.
struct LeaseWaiter {
  LeaseWaiter(boost::asio::any_io_executor executor, TimePoint deadline) : timer(std::move(executor), deadline) {}
  boost::asio::steady_timer timer;  // ends at the deadline, or earlier when the outcome is there
  std::optional<Result<Lease>> outcome;
};

// One child, from before its start to after its exit. Only on the supervisor's executor, but for `running`.
struct ChildRun {
  ChildRun(const boost::asio::any_io_executor& executor, std::string model_, Generation generation_)
      : model(std::move(model_)), generation(generation_), changed(executor, TimePoint::max()) {}
  std::string model;
  Generation generation = 0;
  PreparedPlan prepared;
  ChildFiles files;
  std::shared_ptr<RunningModel> running;  // immutable once the model is ready
  base::ChildId child = 0;                // 0: not started yet
  std::optional<int> exit_status;
  bool stop_wanted = false;
  bool stopping = false;
  boost::asio::steady_timer changed;  // pulsed at each change of the above
};

// The supervisor's state. The schedule, plans, waiters and runs are guarded by `mutex`, so that a request for a
// loaded model is granted on its own thread without a hop; children are driven on `executor`.
struct Lease::Core : std::enable_shared_from_this<Lease::Core> {
  Core(boost::asio::any_io_executor executor, SupervisorOptions options, std::shared_ptr<ChildLauncher> launcher,
       std::shared_ptr<ChildProbe> probe);

  // Carries out what the schedule decides now. On any thread, without the mutex held.
  void pump();
  void release(const std::string& model, Generation generation) noexcept;
  void forget_waiter(TicketId ticket);

  boost::asio::awaitable<Result<void>> adopt();
  void child_exited(base::ChildExit ended);
  void close();

  boost::asio::any_io_executor executor;
  SupervisorOptions options;
  std::shared_ptr<ChildLauncher> launcher;
  std::shared_ptr<ChildProbe> probe;

  mutable std::mutex mutex;
  ModelSchedule schedule;
  std::map<std::string, PreparedPlan, std::less<>> plans;
  std::map<TicketId, std::shared_ptr<LeaseWaiter>> waiters;
  std::map<Generation, std::shared_ptr<ChildRun>> runs;

 private:
  void carry_out(const Action& action);
  void deliver(TicketId ticket, Result<Lease> outcome);
  std::shared_ptr<ChildRun> make_run(const std::string& model, Generation generation);
  void launch(boost::asio::awaitable<void> coroutine);
  void arm_timer();

  boost::asio::awaitable<void> serve(std::shared_ptr<ChildRun> run);
  boost::asio::awaitable<Result<void>> bring_up(ChildRun& run);
  boost::asio::awaitable<Result<void>> start_child(ChildRun& run);
  boost::asio::awaitable<Result<void>> wait_until_healthy(ChildRun& run);
  boost::asio::awaitable<void> stop_child(std::shared_ptr<ChildRun> run);
  boost::asio::awaitable<void> stop_stranger(base::ChildId child);
  boost::asio::awaitable<void> wait_for_change(ChildRun& run, std::chrono::milliseconds at_most);
  void want_stop(const std::shared_ptr<ChildRun>& run);
  void finish(ChildRun& run, const std::string& reason);
  bool adopt_child(const base::Child& child, TimePoint protected_until);
  void remove_leftovers();

  boost::asio::steady_timer wake_;
  std::optional<TimePoint> wake_at_;              // guarded by the mutex
  std::map<base::ChildId, int> unclaimed_exits_;  // of children whose spawn has not been answered to us yet
  int spawns_waiting_ = 0;                        // for the parent's answer
  std::atomic<bool> closed_ = false;              // set under the mutex
};

}  // namespace molly::targets
