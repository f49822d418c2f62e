#pragma once

#include <string>

#include "audit/log.h"
#include "pipeline/runtime.h"
#include "targets/supervisor.h"

namespace molly::apps {

struct StatusInput {
  const pipeline::Runtime& runtime;
  targets::SupervisorStatus supervisor;
  audit::Log::Status audit;
  std::string config_path;
  std::string config_problem;  // why the last reload was refused; empty: it was not
  std::uint64_t in_flight = 0;
};

// What `molly status --json` prints.
std::string status_json(const StatusInput& input);

}  // namespace molly::apps
