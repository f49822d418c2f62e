#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "config/section.h"
#include "core/error.h"
#include "traces/record.h"

namespace molly::traces {

// [traces]
struct Settings {
  std::uint64_t max_bytes = 256ULL << 20;  // max_bytes = "256MiB": of all segments together; at least 1 MiB
};
Settings read_settings(config::Section section);

// Reading a trace folder, from any process, while another may write to it. Blocks on the disk: finding an id
// reads the segments from that id's time on, at worst all. A torn record at a segment's end is passed over.
Result<std::optional<DecisionRecord>> find_in(const std::filesystem::path& folder, const TraceId& id);
// At most `count`, newest first.
Result<std::vector<DecisionRecord>> recent_in(const std::filesystem::path& folder, std::size_t count);

// The decision records of this data folder: segment files of which the oldest are dropped, so that all
// together never exceed max_bytes. One process at a time may hold a folder.
class Traces {
 public:
  // Blocks on the disk. conflict where another process holds the folder.
  static Result<std::unique_ptr<Traces>> open(std::filesystem::path folder, Settings settings);
  // Writes what is still waiting.
  ~Traces();

  // Any thread, well under a microsecond, never waits for the disk: the record is encoded into a bounded buffer (1 MiB)
  // that a thread of its own writes out within 100 ms or at 256 KiB. When the disk cannot follow, the record is
  // lost and counted. Text members beyond 1,000 bytes are shortened, lists end at 4,096.
  void record(const DecisionRecord& record);

  // As find_in and recent_in, and sees what was recorded before the call. Block on the disk.
  Result<std::optional<DecisionRecord>> find(const TraceId& id);
  Result<std::vector<DecisionRecord>> recent(std::size_t count);
  // Writes out what waits, and tells of the last failure to write.
  Result<void> flush();

  // For another bound after a reload; takes effect at the next write.
  void apply(Settings settings);
  std::uint64_t recorded() const;
  std::uint64_t lost() const;

 private:
  struct State;
  explicit Traces(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace molly::traces
