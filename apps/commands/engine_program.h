#pragma once

#include <filesystem>
#include <string>

#include "core/error.h"

namespace molly::apps {

// What `molly-engine plan --json` prints: it knows the accelerators, which this program, without ggml, cannot see.
// Waits for it, at most a few seconds. unavailable, io_failed.
Result<std::string> ask_engine_for_device(const std::filesystem::path& engine);

}  // namespace molly::apps
