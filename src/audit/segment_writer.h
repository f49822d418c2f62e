#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "audit/log.h"
#include "base/os/file_descriptor.h"
#include "core/error.h"
#include "core/ids.h"

namespace molly::audit {

struct LogEnd;

// The segment being written. append() and sync() may run at the same time; everything else alone.
class SegmentWriter {
 public:
  using FaultHook = std::function<Fault(DiskCall)>;

  // Finds the end of the log in the folder, cutting off an incomplete last record; begins a new log in an
  // empty folder.
  static Result<LogEnd> open_end(const std::filesystem::path& folder, FaultHook fault);

  // All or nothing as far as a later rewrite_tail or reader is concerned.
  Result<void> append(std::string_view bytes);
  Result<void> sync();
  // Puts `bytes` where everything since the last good sync should stand, cuts off what follows, and syncs.
  Result<void> rewrite_tail(std::string_view bytes);
  Result<SegmentWriter> begin_next(std::uint64_t first_sequence, const Digest& previous) const;
  std::uint64_t size() const { return size_; }

 private:
  SegmentWriter(std::filesystem::path folder, std::uint32_t number, base::FileDescriptor file, std::uint64_t size,
                FaultHook fault);
  static Result<SegmentWriter> create(const std::filesystem::path& folder, std::uint32_t number,
                                      std::uint64_t first_sequence, const Digest& previous, FaultHook fault);
  static Result<LogEnd> continue_segment(const std::filesystem::path& folder, std::uint32_t number, FaultHook fault);
  Result<void> write_at(std::uint64_t offset, std::string_view bytes);
  std::unexpected<Error> failed(std::string_view what, int error) const;

  std::filesystem::path folder_;
  std::uint32_t number_;
  base::FileDescriptor file_;
  std::uint64_t size_;
  FaultHook fault_;
};

struct LogEnd {
  SegmentWriter writer;
  std::uint64_t sequence = 0;  // of the last record
  Digest head{};
  std::string outcome;  // for the `opened` record
  std::uint64_t dropped_bytes = 0;
};

}  // namespace molly::audit
