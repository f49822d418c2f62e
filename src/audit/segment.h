#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "audit/record.h"
#include "base/os/file_descriptor.h"
#include "core/error.h"

// The files of the log, "00000001.audit" and so on, shared by the sources of this folder.
//
//   header (64 bytes): "mollyaud", format u32 = 1, number u32, first sequence u64, zeros u64, previous hash 32
//   records:           length u32, body (record.h), hash 32 = SHA-256(previous hash, length, body)
//
// The previous hash of a segment's first record is the one in its header: that of the last record of the
// segment before, zeros for the first. A later format (a Merkle tree over the same bodies) raises the number.
namespace molly::audit {

inline constexpr std::size_t header_bytes = 64;
inline constexpr std::size_t length_bytes = 4;
inline constexpr std::size_t hash_bytes = 32;
inline constexpr std::size_t max_body_bytes = 256 + 4 * Record::max_text;

struct SegmentHeader {
  std::uint32_t number = 1;
  std::uint64_t first_sequence = 1;
  Digest previous{};
};
std::string encode(const SegmentHeader& header);
std::optional<SegmentHeader> decode_header(std::string_view bytes);

std::filesystem::path segment_path(const std::filesystem::path& folder, std::uint32_t number);

// Numbers of the segments in the folder, ascending.
Result<std::vector<std::uint32_t>> list_segments(const std::filesystem::path& folder);

// From the segment's header; nothing where it cannot be read.
std::optional<std::uint64_t> first_sequence_of(const std::filesystem::path& folder, std::uint32_t number);

// Appends one whole record to `out`; returns its hash.
Digest frame_to(std::string& out, const Digest& previous, std::uint64_t sequence,
                std::chrono::system_clock::time_point time, const Record& record);

// Where reading stopped because the bytes are not what they should be.
struct Damage {
  std::filesystem::path file;
  std::uint64_t offset = 0;
  std::string why;
  bool torn = false;  // the last record of the last segment is merely incomplete
};

// Reads segments in order and checks every byte on the way.
class Walker {
 public:
  // Starts at the first segment, which must be the beginning of the log.
  static Result<Walker> from_beginning(const std::filesystem::path& folder);
  // Starts at a later one, trusting what its header says of those before.
  static Result<Walker> from_segment(const std::filesystem::path& folder, std::uint32_t number);

  // The next good entry; nothing at the end of the log or at damage, which damage() then tells apart.
  Result<std::optional<Entry>> next();

  const std::optional<Damage>& damage() const { return damage_; }
  std::uint64_t next_sequence() const { return next_sequence_; }
  const Digest& head() const { return head_; }          // hash of the last good record
  std::uint64_t good_bytes() const { return offset_; }  // of the segment being read
  std::uint64_t segments_read() const { return segments_read_; }
  std::uint32_t segment() const { return segment_; }

 private:
  Walker(std::filesystem::path folder, std::vector<std::uint32_t> numbers);
  Result<void> open_next_segment();
  Result<void> fill(std::size_t wanted);
  std::string_view buffered() const { return std::string_view(buffer_).substr(position_); }
  std::optional<Entry> damaged(std::string why);
  Result<std::optional<Entry>> at_end_of_bytes();
  Result<bool> only_zeros_left();

  std::filesystem::path folder_;
  std::vector<std::uint32_t> numbers_;
  std::size_t next_number_ = 0;
  std::uint32_t segment_ = 0;
  std::uint64_t segments_read_ = 0;
  bool trust_first_ = false;
  base::FileDescriptor file_;
  std::string buffer_;
  std::size_t position_ = 0;  // in buffer_
  std::uint64_t offset_ = 0;  // in the file, of buffer_[position_]
  std::uint64_t next_sequence_ = 1;
  Digest head_{};
  std::optional<Damage> damage_;
};

}  // namespace molly::audit
