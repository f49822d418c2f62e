#pragma once

#include <vector>

#include "engine/model/backend.h"
#include "sizing/device.h"

namespace molly::engine {

// What ggml's installed backends offer beside the processor. `backend` is the proof that they were loaded.
std::vector<sizing::Accelerator> accelerators(const Backend& backend);

}  // namespace molly::engine
