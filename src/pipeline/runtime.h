#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "policy/engine.h"
#include "routing/route.h"
#include "targets/target.h"
#include "traces/record.h"

namespace molly::pipeline {

// Everything that a reload replaces, as one immutable whole. A request keeps the one it began with.
struct Runtime {
  std::shared_ptr<const policy::Engine> engine;
  std::vector<std::shared_ptr<targets::Target>> targets;  // in the engine's order
  std::map<std::string, std::vector<std::string>, std::less<>> aliases;
  traces::SharedCatalogue catalogue;
};

// What the request's `model` stands for: all targets for "", "auto" and "molly", an alias's targets in their
// order, one target by its name. not_found names the nearest known name.
Result<routing::Selection> select(const Runtime& runtime, std::string_view model);

}  // namespace molly::pipeline
