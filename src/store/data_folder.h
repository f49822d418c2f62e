#pragma once

#include <filesystem>
#include <optional>

#include "core/error.h"

namespace molly::store {

// Everything that Molly keeps: one folder that only its owner can enter.
struct DataFolder {
  std::filesystem::path root;

  std::filesystem::path database() const { return root / "molly.db"; }
  std::filesystem::path audit() const { return root / "audit"; }
  std::filesystem::path traces() const { return root / "traces"; }
  std::filesystem::path keys() const { return root / "keys"; }
  std::filesystem::path run() const { return root / "run"; }
  std::filesystem::path logs() const { return root / "logs"; }
};

// `chosen` (from --data), or $XDG_DATA_HOME/molly (default ~/.local/share/molly). Touches nothing.
Result<std::filesystem::path> data_path(const std::optional<std::filesystem::path>& chosen);

// Makes the folder and those below it with mode 0700, or checks them: a folder of another user is refused;
// one that others can enter is closed to them where it is Molly's already or empty, and refused where
// something else lives in it. Blocks on the disk.
Result<DataFolder> open_data_folder(const std::filesystem::path& root);

}  // namespace molly::store
