#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "core/error.h"

namespace molly::engine {

// A file that is read piece by piece, so that a large one is never in memory as a whole.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::uint64_t size() const = 0;
  // As many bytes as there are from `offset` on, at most into.size(); how many that was. io_failed.
  virtual Result<std::size_t> read_some(std::uint64_t offset, std::span<std::uint8_t> into) const = 0;
  // The whole of `into`. invalid_request: the file ends before, also when it was cut after it was opened.
  Result<void> read(std::uint64_t offset, std::span<std::uint8_t> into) const;
};

// io_failed: it cannot be opened, or is no plain file.
Result<std::shared_ptr<const ByteSource>> open_bytes(const std::filesystem::path& path);

std::shared_ptr<const ByteSource> bytes_in_memory(std::vector<std::uint8_t> bytes);

}  // namespace molly::engine
