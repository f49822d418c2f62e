#pragma once

#include <vector>

#include "commands/command.h"
#include "targets/model_list.h"

namespace molly::apps {

// The models of this device: those that were added, and the embedded one.
Result<std::vector<targets::ModelEntry>> local_models(const Globals& globals);

// [models] of the configuration. One with mistakes is `molly doctor`'s to explain; models are shown, planned and added
// all the same, with the defaults.
targets::ModelSettings model_settings(const Globals& globals, const std::vector<targets::ModelEntry>& models);

}  // namespace molly::apps
