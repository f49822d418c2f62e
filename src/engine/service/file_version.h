#pragma once

#include <filesystem>
#include <string>

#include "core/error.h"

namespace molly::engine {

// Names a file's content as it is now: device, inode, size and time of change. A changed file has another one, so that
// cached keys and values of an older adapter are never taken for the new one's. invalid_request when there is no such
// file.
Result<std::string> file_version(const std::filesystem::path& file);

}  // namespace molly::engine
