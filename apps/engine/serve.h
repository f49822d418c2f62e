#pragma once

#include <CLI/CLI.hpp>

namespace molly::apps {

// `molly-engine serve`.
void add_engine_serve(CLI::App& app, int& exit_code);

}  // namespace molly::apps
