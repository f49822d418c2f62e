#pragma once

#include <CLI/CLI.hpp>

namespace molly::apps {

// `molly-engine adapter import|export|show`.
void add_engine_adapter(CLI::App& app, int& exit_code);

}  // namespace molly::apps
