#pragma once

#include <filesystem>
#include <optional>

#include "config/section.h"

namespace molly::config {

// Reads and parses the file. Fails (io_failed) where it cannot be read; what is wrong inside it are the
// document's problems. At most 4 MiB. Blocks on the disk.
Result<Document> load_file(const std::filesystem::path& path);

// Where the configuration stands: `chosen` (from --config), which must exist, or
// $XDG_CONFIG_HOME/molly/molly.toml (default ~/.config/...), which may be absent.
std::filesystem::path default_path();

struct Found {
  std::filesystem::path path;  // the file to watch, whether or not it exists yet
  Document document;
};
Result<Found> find_config(const std::optional<std::filesystem::path>& chosen);

}  // namespace molly::config
