#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "targets/supervisor.h"

// From a model's plan to the command line of its process, and what the parent remembers of it.
namespace molly::targets {

// A plan whose figures were filled from the file's header.
struct PreparedPlan {
  ModelPlan plan;
  std::uint64_t context_length = 0;  // tokens for each request
  std::uint64_t memory_bytes = 0;
  bool operator==(const PreparedPlan&) const = default;
};

// Reads the header (blocks on the disk). invalid_request also when molly-engine's plan does not fit the memory.
Result<PreparedPlan> prepare_plan(const ModelPlan& plan, const SupervisorOptions& options);

struct ChildFiles {
  std::filesystem::path socket;
  std::filesystem::path key;
  bool operator==(const ChildFiles&) const = default;
};

// Names nobody used before, in the run folder.
ChildFiles new_child_files(const std::filesystem::path& run_folder);

// A child that was killed leaves them behind, and molly-engine the lock beside its socket.
void remove_child_files(const ChildFiles& files);
// Whether some child, of this control plane or an earlier one, had it in the run folder.
bool is_child_file(const std::filesystem::path& path);

// The server's program and arguments. The key stands in its file, never here.
std::vector<std::string> child_arguments(const PreparedPlan& prepared, const SupervisorOptions& options,
                                         const ChildFiles& files);

// What of our environment a model process may see: paths, locale and what drivers of accelerators read.
std::vector<std::string> child_environment();

// The log of a model's process.
std::filesystem::path child_log(const std::filesystem::path& log_folder, std::string_view model);

// What the parent keeps for the next control plane.
struct ChildMemo {
  std::string model;
  ChildFiles files;
  std::string plan;  // equal only for equal plans
  bool operator==(const ChildMemo&) const = default;
};

std::string plan_fingerprint(const PreparedPlan& prepared, const SupervisorOptions& options);
std::string write_memo(const ChildMemo& memo);
std::optional<ChildMemo> read_memo(std::string_view blob);

// 256 random bits as text.
base::Secret new_child_key();

}  // namespace molly::targets
