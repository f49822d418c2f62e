#pragma once

#include "engine/adapters/lora_file.h"
#include "engine/model/config.h"

namespace molly::engine {

// What a base of this configuration expects of its adapters.
BaseShape adapter_shape(const ModelConfig& config);

}  // namespace molly::engine
