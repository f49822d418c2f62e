#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "sizing/engine_plan.h"

namespace molly::apps {

// What `serve` and `plan` take on their command lines; what is not said the plan chooses.
struct WishOptions {
  sizing::EngineWishes wishes;
  std::string memory;
  std::string pool;
  std::string warm;
  std::string kv_type;
  std::string adapter_type = "f16";
  std::string cpus;
};

CLI::Validator is_size();

// Adds --memory, --threads, --cpus, --context, --parallel, --kv-type, --page-tokens, --adapter-type and --adapter-rank.
void add_wishes(CLI::App& command, WishOptions& options);

// Binds this process to the processors of --cpus, before anything of the kernel runtime is loaded.
Result<void> choose_cpus(const WishOptions& options);

sizing::EngineWishes wishes_of(const WishOptions& options);

}  // namespace molly::apps
