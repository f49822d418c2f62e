#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/error.h"

// What a trainer says while it works: one JSON object a line on its standard output, see docs/training-jobs.md.
namespace molly::training {

struct JobStarted {
  std::uint64_t steps = 0;
  std::uint64_t first_step = 1;    // above 1: resumed behind a checkpoint
  std::uint64_t memory_bytes = 0;  // estimated peak
  std::uint64_t train_examples = 0;
  std::uint64_t held_out_examples = 0;
  bool operator==(const JobStarted&) const = default;
};

struct JobStep {
  std::uint64_t step = 0;  // from 1
  std::uint64_t steps = 0;
  double loss = 0;  // nats for each token that counts
  double rate = 0;
  double tokens_per_second = 0;
  double seconds_left = 0;
  bool operator==(const JobStep&) const = default;
};

struct JobHeldOut {
  std::uint64_t step = 0;  // 0: before the first
  double loss = 0;
  bool operator==(const JobHeldOut&) const = default;
};

struct JobCheckpoint {
  std::uint64_t step = 0;
  std::string path;
  bool operator==(const JobCheckpoint&) const = default;
};

struct JobWarning {
  std::string message;
  bool operator==(const JobWarning&) const = default;
};

struct JobFinished {
  std::string adapter;
  std::string manifest;
  std::vector<std::pair<std::string, double>> metrics;  // "held_out_loss", "train_loss", ...
  bool operator==(const JobFinished&) const = default;
};

struct JobFailed {
  std::string code;  // as in ErrorCode: "invalid_request", "io_failed", "cancelled", ...
  std::string message;
  bool operator==(const JobFailed&) const = default;
};

using JobEvent = std::variant<JobStarted, JobStep, JobHeldOut, JobCheckpoint, JobWarning, JobFinished, JobFailed>;

// One line, without its end.
std::string job_event_json(const JobEvent& event);
// The reader's side. Members and kinds of events that a later version adds are passed over: nothing for an event of an
// unknown kind. upstream_failed says what is wrong with the line, by member.
Result<std::optional<JobEvent>> parse_job_event(std::string_view line);

}  // namespace molly::training
