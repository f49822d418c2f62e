#pragma once

#include <CLI/CLI.hpp>

namespace molly::apps {

// `molly-engine plan`.
void add_engine_plan(CLI::App& app, int& exit_code);

}  // namespace molly::apps
