#pragma once

#include "engine/text/sampler.h"

namespace molly::engine {

// invalid_request names the first parameter that is out of range.
Result<void> check_settings(const SamplingSettings& settings, const Vocabulary& vocabulary);

}  // namespace molly::engine
