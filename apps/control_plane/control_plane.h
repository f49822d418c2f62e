#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/parent/parent.h"

namespace molly::apps {

struct ControlPlaneOptions {
  std::optional<std::filesystem::path> config;
  std::filesystem::path data;
  std::vector<std::string> listen;  // instead of the configuration's; empty: as configured
  base::Inherited inherited;
};

// Runs the control plane until it is told to stop; returns the process's exit code.
int run_control_plane(ControlPlaneOptions options);

}  // namespace molly::apps
