#pragma once

#include <filesystem>
#include <string_view>

#include "base/secret.h"
#include "core/error.h"

namespace molly::config {

// Resolves "env:NAME" or "file:PATH"; a relative path starts at `folder`. Line ends behind the secret are
// dropped. A file must be a regular one of at most 64 KiB that nobody but its owner can read, unless root
// owns it (then others were let in on purpose). Errors never repeat what was read, nor a source that is
// neither form: it may be the secret itself. Blocks on the disk.
Result<base::Secret> read_secret(std::string_view source, const std::filesystem::path& folder);

}  // namespace molly::config
