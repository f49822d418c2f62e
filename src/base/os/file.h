#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/os/file_descriptor.h"
#include "core/error.h"

// Files and folders as Molly keeps them: owner only, replaced atomically, durable when asked. All of these
// block on the disk: not for network threads on a hot path. Errors are ErrorCode::io_failed and name the path.
namespace molly::base {

// Creates the folder (and those above it) with mode 0700 when absent; one that exists and that others can enter
// is narrowed to 0700; one of another user is an error.
Result<void> make_private_folder(const std::filesystem::path& path);

// The whole file; one longer than max_bytes is ErrorCode::payload_too_large.
Result<std::string> read_file(const std::filesystem::path& path, std::uint64_t max_bytes);

enum class Durability : std::uint8_t {
  kernel,  // survives kill -9, not a power cut
  disk,    // file and folder synced
};

// Writes a temporary file beside `path` (mode 0600), then renames it over: readers see the old or the new
// content, never a part.
Result<void> write_file_atomically(const std::filesystem::path& path, std::string_view content,
                                   Durability durability = Durability::disk);

// An exclusive lock on a file, which the kernel drops when the holder dies. Not inherited by children.
class FileLock {
 public:
  // Does not wait: a lock that another process holds is ErrorCode::conflict.
  static Result<FileLock> acquire(const std::filesystem::path& path);

 private:
  explicit FileLock(FileDescriptor descriptor) : descriptor_(std::move(descriptor)) {}
  FileDescriptor descriptor_;
};

}  // namespace molly::base
