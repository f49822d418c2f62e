#pragma once

#include <memory>
#include <string>

#include "pipeline/services.h"

namespace molly::server {

// Prometheus metrics. Thread-safe; recording takes well under a microsecond.
class Metrics {
 public:
  Metrics();
  ~Metrics();

  void observe(const pipeline::Observation& observation);
  // Requests that never reached the pipeline, by error code.
  void refused(ErrorCode code);
  // Gauges that somebody else knows, set right before rendering.
  struct Gauges {
    std::uint64_t in_flight = 0;
    std::uint64_t connections = 0;
    std::uint64_t audit_records = 0;
    bool audit_failing = false;
    std::uint64_t traces_lost = 0;
  };
  // The text exposition format, version 0.0.4.
  std::string render(const Gauges& gauges);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace molly::server
