#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

// Segment files: <sequence>-<start in Unix milliseconds>.traces, a mark, then frames of length, checksum and
// payload. What does not fit its checksum ends the file: the tail that a crash tore.
namespace molly::traces {

inline constexpr std::string_view segment_mark = "MOLLYTR1";
inline constexpr std::size_t frame_head_size = 8;

struct Segment {
  std::filesystem::path path;
  std::uint64_t sequence = 0;
  std::uint64_t start = 0;  // Unix milliseconds; nothing in it was written before
  std::uint64_t bytes = 0;
};

std::filesystem::path segment_path(const std::filesystem::path& folder, std::uint64_t sequence, std::uint64_t start);

// Oldest first. Other files in the folder are passed over.
Result<std::vector<Segment>> list_segments(const std::filesystem::path& folder);

// The whole file, or nothing where it is gone (dropped since it was listed). Blocks on the disk.
Result<std::optional<std::string>> read_segment(const std::filesystem::path& path);

std::uint32_t checksum(std::string_view payload);

// Walks the payloads of a segment's content.
class Frames {
 public:
  explicit Frames(std::string_view content);
  // The next payload; nothing at the end or at what is torn.
  std::optional<std::string_view> next();
  // Bytes up to the end of the last sound frame.
  std::size_t sound_bytes() const { return position_; }

 private:
  std::string_view content_;
  std::size_t position_ = 0;
};

}  // namespace molly::traces
