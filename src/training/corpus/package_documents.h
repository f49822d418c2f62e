#pragma once

#include <filesystem>
#include <vector>

#include "core/error.h"
#include "training/corpus/corpus.h"
#include "training/corpus/sources.h"

namespace molly::training {

// The documents of a package that is unpacked at `folder`, cleaned, ordered by path; short and repeated ones too.
// Symbolic links are not followed. io_failed.
Result<std::vector<Document>> package_documents(const Source& source, const std::filesystem::path& folder);

}  // namespace molly::training
