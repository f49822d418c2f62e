#pragma once

#include <atomic>
#include <chrono>
#include <functional>

#include "audit/log.h"
#include "config/live.h"
#include "pipeline/runtime.h"
#include "traces/traces.h"

namespace molly::pipeline {

// How one request ended, for metrics.
struct Observation {
  const TargetDescription* target = nullptr;  // null: none answered
  Endpoint endpoint = Endpoint::chat;
  traces::Outcome outcome = traces::Outcome::answered;
  std::optional<ErrorCode> error;
  std::uint32_t attempts = 0;
  std::chrono::nanoseconds decision{};     // from the parsed request to the route
  std::chrono::nanoseconds first_event{};  // from the parsed request to the first token; 0: none
  std::chrono::nanoseconds total{};
  std::uint64_t prompt_tokens = 0;
  std::uint64_t completion_tokens = 0;
};

// What all requests share and no reload replaces. Outlives every conversation; thread-safe.
struct Services {
  audit::Log& audit;
  traces::Traces& traces;
  config::Live<Runtime>& runtime;
  std::function<void(const Observation&)> observe;
  std::chrono::milliseconds reserve_deadline{300'000};  // longest wait for a model process to start or a slot in it
};

}  // namespace molly::pipeline
