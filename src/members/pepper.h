#pragma once

#include <filesystem>

#include "base/secret.h"
#include "core/error.h"

namespace molly::members {

// The 32 secret bytes that key the hashes of access keys, in a file of their own.
enum class PepperUse { existing, create_when_absent };

// Reads the file; where it is absent, makes it (0600, synced) or fails. Two processes that make it at once end up
// with the same one. Blocks on the disk.
Result<base::Secret> open_pepper(const std::filesystem::path& file, PepperUse use);

}  // namespace molly::members
