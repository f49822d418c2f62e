#pragma once

#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "traces/record.h"
#include "traces/segment.h"

namespace molly::traces {

// Appends frames to the newest segment, begins new ones, drops the oldest. For one thread at a time; blocks on
// the disk.
class SegmentWriter {
 public:
  // Takes up the newest segment behind its last sound frame. conflict where another process holds the folder.
  static Result<SegmentWriter> open(std::filesystem::path folder, std::uint64_t max_bytes);
  SegmentWriter(SegmentWriter&& other) noexcept;
  SegmentWriter& operator=(SegmentWriter&&) = delete;
  ~SegmentWriter();

  // `frames` holds record frames whose checksums are still to be filled in. A catalogue is put before the first
  // record of a segment that needs it. On an error, what was not written is given up.
  Result<void> write(std::string& frames, std::span<const SharedCatalogue> catalogues);
  // How many of the last write's records an error left unwritten.
  std::uint64_t given_up() const { return given_up_; }
  void bound(std::uint64_t max_bytes) { max_bytes_ = max_bytes; }

 private:
  SegmentWriter(std::filesystem::path folder, std::uint64_t max_bytes, int lock);
  Result<void> resume();
  Result<void> write_all_frames(std::string& frames, std::span<const SharedCatalogue> catalogues);
  Result<void> begin_segment();
  Result<void> append(std::string_view bytes);
  Result<void> append_catalogue(std::uint64_t id, std::span<const SharedCatalogue> catalogues);
  void make_room(std::uint64_t bytes);
  void leave_segment();
  std::uint64_t segment_limit() const;

  std::filesystem::path folder_;
  std::uint64_t max_bytes_;
  int lock_ = -1;                    // the folder, locked against other processes
  int file_ = -1;                    // the newest segment; -1: the next write begins one
  std::vector<Segment> segments_;    // oldest first
  std::set<std::uint64_t> written_;  // catalogues that stand in the newest segment
  std::size_t safe_ = 0;             // bytes of the frames being written that are in a file
  std::uint64_t given_up_ = 0;
};

}  // namespace molly::traces
