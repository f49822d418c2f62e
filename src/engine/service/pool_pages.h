#pragma once

#include <cstdint>
#include <string>

#include "core/error.h"

namespace molly::engine {

// How many pages a pool of that size has. invalid_request, naming the field, when it is too small or absurdly large.
Result<std::uint32_t> pages_of_pool(std::uint64_t pool_bytes, std::uint64_t page_bytes, const std::string& field);

}  // namespace molly::engine
