#include "audit/verify.h"

#include <algorithm>
#include <format>

#include "audit/segment.h"

namespace molly::audit {

Result<Report> verify(const std::filesystem::path& folder) {
  auto walker = Walker::from_beginning(folder);
  if (!walker) return std::unexpected(std::move(walker.error()));
  Report report;
  while (true) {
    auto entry = walker->next();
    if (!entry) return std::unexpected(std::move(entry.error()));
    if (!*entry) break;
    ++report.records;
    const Record& record = (*entry)->record;
    if (record.kind == Kind::opened && (record.outcome == "unclean" || record.outcome == "torn"))
      ++report.unclean_openings;
    if (record.kind == Kind::gap) report.unrecorded += record.counts.bytes_in;
  }
  report.segments = walker->segments_read();
  report.head = walker->head();
  if (const auto& damage = walker->damage())
    report.first_bad =
        Report::Bad{damage->file.filename().string(), damage->offset, walker->next_sequence(), damage->why};
  return report;
}

struct Reader::State {
  Walker walker;
  std::uint64_t first_sequence;
};

Reader::Reader(std::unique_ptr<State> state) : state_(std::move(state)) {}
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;
Reader::~Reader() = default;

namespace {

// The last segment that starts at or before the sequence, from the segments' headers; 1 where none tells.
Result<std::uint32_t> segment_holding(const std::filesystem::path& folder, std::uint64_t sequence) {
  auto numbers = list_segments(folder);
  if (!numbers) return std::unexpected(std::move(numbers.error()));
  std::uint32_t found = numbers->empty() ? 1 : numbers->front();
  for (const std::uint32_t number : *numbers) {
    const auto first = first_sequence_of(folder, number);
    if (first && *first <= sequence) found = number;
  }
  return found;
}

}  // namespace

Result<Reader> Reader::open(const std::filesystem::path& folder, std::uint64_t first_sequence) {
  const auto number = segment_holding(folder, first_sequence);
  if (!number) return std::unexpected(number.error());
  auto walker = *number == 1 ? Walker::from_beginning(folder) : Walker::from_segment(folder, *number);
  if (!walker) return std::unexpected(std::move(walker.error()));
  return Reader(std::make_unique<State>(std::move(*walker), first_sequence));
}

Result<std::optional<Entry>> Reader::next() {
  while (true) {
    auto entry = state_->walker.next();
    if (!entry || (*entry && (*entry)->sequence >= state_->first_sequence)) return entry;
    if (*entry) continue;
    const auto& damage = state_->walker.damage();
    if (!damage) return std::nullopt;
    return failure(ErrorCode::io_failed, std::format("The audit log is damaged at record {} ({}, byte {}): {}.",
                                                     state_->walker.next_sequence(), damage->file.filename().string(),
                                                     damage->offset, damage->why));
  }
}

}  // namespace molly::audit
