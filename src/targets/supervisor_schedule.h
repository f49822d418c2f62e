#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/error.h"

// Which model is loaded when, who waits for whom: the supervisor's decisions without any process, socket or clock.
namespace molly::targets {

enum class ModelState : std::uint8_t {
  stopped,   // no child
  starting,  // a child runs and does not answer yet
  ready,     // serves
  draining,  // takes no new requests; its child is stopped when those in flight are done
  failed,    // the last start or run ended badly; the next start is not tried before a time
};

std::string_view to_string(ModelState state);

// [models] of molly.toml.
struct ScheduleOptions {
  std::uint64_t memory_budget = 0;                // bytes for all children together (key `memory`)
  std::chrono::milliseconds keep_alive{600'000};  // idle that long, a model is unloaded; max(): never
  std::uint32_t max_waiting = 256;                // requests waiting for a model or a slot, all models together
  std::chrono::milliseconds patience{2'000};      // a loaded model serves at least that long before it must
                                                  // make room for one that others wait for...
  std::uint32_t burst = 64;                       // ...or this many requests
  std::chrono::milliseconds first_backoff{500};   // after a second failure in a row; then doubled
  std::chrono::milliseconds max_backoff{30'000};
  std::chrono::milliseconds stable_after{30'000};  // serving that long, a crash counts as the first again
  std::chrono::milliseconds drain_limit{20'000};   // an unload's patience with requests in flight
};

using TimePoint = std::chrono::steady_clock::time_point;
using TicketId = std::uint64_t;    // one waiting request
using Generation = std::uint64_t;  // one run of one child; never reused

struct StartModel {
  std::string model;
  Generation generation = 0;
};
struct StopModel {
  std::string model;
  Generation generation = 0;
};
struct GrantTicket {
  TicketId ticket = 0;
  std::string model;
  Generation generation = 0;
};
struct FailTicket {
  TicketId ticket = 0;
  Error error;
};
using Action = std::variant<StartModel, StopModel, GrantTicket, FailTicket>;

// What one model looks like from outside.
struct ModelView {
  std::string name;
  ModelState state = ModelState::stopped;
  std::string reason;
  Generation generation = 0;  // of the child that runs; 0: none
  std::uint32_t attempts = 0;
  std::optional<TimePoint> retry_at;  // failed: when the next start may be tried
  std::uint64_t bytes = 0;
  std::uint32_t leases = 0;
  std::uint32_t waiting = 0;
};

// Rules: memory of all children that have not exited never exceeds the budget; a model with requests in flight is
// never stopped to make room; the model whose oldest request waits longest is served next; waiting requests of one
// model are served together. After every call that changes something, call decide and carry out its actions.
// Not thread-safe.
class ModelSchedule {
 public:
  explicit ModelSchedule(ScheduleOptions options) : options_(options) {}

  // A model that is known already gets the new figures for its next start.
  Result<void> add(const std::string& model, std::uint64_t bytes, std::uint32_t slots);
  void remove(std::string_view model, TimePoint now);

  // A request comes. Errors: not_found, unavailable (failed a moment ago), overloaded.
  Result<TicketId> request(std::string_view model, TimePoint now);
  // The request no longer waits (it left, or its deadline passed). Unknown tickets are ignored.
  void cancel(TicketId ticket);
  // A granted request is done.
  void release(std::string_view model, Generation generation, TimePoint now);

  Result<void> load(std::string_view model, TimePoint now);
  Result<void> unload(std::string_view model, std::string reason, TimePoint now);

  // A child from an earlier control plane, alive, readiness unknown; not evicted before `protected_until`.
  std::optional<Generation> adopt(std::string_view model, TimePoint protected_until);
  void child_ready(std::string_view model, Generation generation, TimePoint now);
  // The child has exited (or never came to be): its memory is free.
  void child_gone(std::string_view model, Generation generation, const std::string& reason, TimePoint now);

  // Starts nothing and grants nothing from now on; waiting requests fail.
  void close();

  std::vector<Action> decide(TimePoint now);
  // When decide must be called again though nothing happens; nothing: not before the next event.
  std::optional<TimePoint> next_decision(TimePoint now) const;

  std::vector<ModelView> view() const;
  std::optional<ModelView> view(std::string_view model) const;
  std::uint64_t memory_used() const;
  std::uint64_t memory_budget() const { return options_.memory_budget; }
  std::uint32_t waiting() const { return waiting_; }

 private:
  struct Ticket {
    TicketId id = 0;
    TimePoint since;
  };
  struct Model {
    std::uint64_t bytes = 0;  // for the next start
    std::uint32_t slots = 1;
    ModelState state = ModelState::stopped;
    std::string reason;
    Generation generation = 0;
    std::uint64_t held_bytes = 0;  // of the child that runs
    std::uint32_t leases = 0;
    std::uint32_t attempts = 0;
    TimePoint retry_at;
    TimePoint ready_since;
    TimePoint last_used;
    TimePoint protected_until;
    std::optional<TimePoint> drain_deadline;  // nothing: waits for its requests however long they take
    std::optional<TimePoint> load_since;      // somebody asked for it to be loaded
    std::uint64_t granted = 0;                // in this run
    bool stop_sent = false;
    bool removed = false;
    std::deque<Ticket> tickets;
  };
  using Models = std::map<std::string, Model, std::less<>>;

  static ModelView view_of(const std::string& name, const Model& model);
  Model* running(std::string_view name, Generation generation);
  bool may_start(const Model& model, TimePoint now) const;
  std::optional<TimePoint> wanted_since(const Model& model) const;
  void begin_drain(Model& model, std::string reason, std::optional<TimePoint> deadline);
  void fail_tickets(Model& model, const Error& error);
  void fail(Model& model, const std::string& reason, TimePoint now);
  std::chrono::milliseconds backoff(std::uint32_t attempts) const;
  void drain_idle(TimePoint now);
  void start_wanted(TimePoint now);
  void make_room(const Model& wanted, std::uint64_t reserved, TimePoint now);
  std::vector<Model*> victims(TimePoint wanted_since_time, TimePoint now);
  bool may_evict(const Model& model, TimePoint wanted_since_time, TimePoint now) const;
  void grant_waiting(TimePoint now);
  void stop_drained(TimePoint now);

  ScheduleOptions options_;
  Models models_;
  std::vector<Action> actions_;
  Generation last_generation_ = 0;
  TicketId last_ticket_ = 0;
  std::uint32_t waiting_ = 0;
  bool closed_ = false;
};

}  // namespace molly::targets
