#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/event.h"
#include "egress/door.h"
#include "pipeline/caller.h"
#include "pipeline/services.h"
#include "policy/clearance.h"
#include "routing/route.h"
#include "targets/answer.h"
#include "targets/target.h"
#include "traces/record.h"

namespace molly::pipeline {

// One request's life: annotated, cleared, routed, dispatched with fallback inside the clearance, answered,
// recorded. Used by one coroutine; destroying it early frees the target and records that the client left.
class Conversation {
 public:
  Conversation(Services& services, Request request, Caller caller);
  ~Conversation();
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  // Everything up to the first token. After an error the conversation is over and recorded.
  boost::asio::awaitable<Result<void>> begin(egress::Door& door);

  // The next events after begin() succeeded, empty after the last. The last batch ends with Done or, when the
  // target broke off, Failed. They live until the next call and may be moved from.
  boost::asio::awaitable<std::span<Event>> next();

  // Breaks the answer off for a reason of our own; it then ends with Failed or an error. On the same thread.
  void interrupt(Error reason);

  bool ended() const { return ended_; }
  // After the end: hands the target's connection back for the next request. Called when the client has its answer.
  void drain(const boost::asio::any_io_executor& executor);

  const TraceId& trace() const { return record_.trace; }
  // "office; tier=T1; zone=lan", and what was tried before; empty until a target answered.
  const std::string& route_text() const { return route_text_; }
  // Parameters that were not honoured, comma-separated; empty: none.
  std::string dropped_text() const;
  const Request& request() const { return request_; }

 private:
  using Clock = std::chrono::steady_clock;

  Result<void> decide();
  void record_decision(const std::vector<routing::TargetView>& views);
  std::vector<routing::TargetView> views() const;
  Error no_candidate() const;
  Error all_failed() const;
  bool honours_request(const targets::Target& target);
  boost::asio::awaitable<targets::Attempt<void>> try_candidate(egress::Door& door, const routing::Candidate& candidate);
  targets::Behalf behalf() const;
  boost::asio::awaitable<targets::Attempt<void>> ask_target(egress::Door& door, const targets::Target& target);
  boost::asio::awaitable<targets::Attempt<void>> check_length(egress::Door& door, const targets::Target& target);
  boost::asio::awaitable<targets::Attempt<policy::AnyDispatch>> authorise(const targets::Target& target,
                                                                          std::string body);
  boost::asio::awaitable<Result<audit::Receipt>> write_record(const TargetDescription& target,
                                                              const audit::Record& record);
  boost::asio::awaitable<targets::Attempt<void>> read_until_committed();
  void note_attempt(std::uint32_t index, Clock::time_point began, const targets::Failure& failure);
  Error broken_off(const targets::Failure& failure);
  void take_usage(std::span<const Event> events);
  void succeed(std::uint32_t index);
  void finish(traces::Outcome outcome, std::optional<ErrorCode> error);

  Services& services_;
  std::shared_ptr<const Runtime> runtime_;
  Request request_;
  Caller caller_;
  Clock::time_point began_ = Clock::now();
  std::optional<policy::Clearance> clearance_;
  routing::Route route_;
  std::vector<targets::Failure> failures_;
  std::unique_ptr<targets::Reservation> reservation_;
  std::unique_ptr<targets::Answer> answer_;
  std::vector<Event> early_;  // events read before the commitment
  std::vector<Event> last_;
  std::string route_text_;
  traces::DecisionRecord record_;
  Observation observation_;
  std::optional<Error> interrupted_;
  bool ended_ = false;
  bool finished_ = false;
};

}  // namespace molly::pipeline
