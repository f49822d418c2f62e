#include "traces/encoding.h"
#include "traces/segment.h"
#include "traces/traces.h"

namespace molly::traces {
namespace {

// The catalogues seen so far in one segment; each stands there before its first record.
class Catalogues {
 public:
  void add(std::string_view payload) {
    if (auto catalogue = decode_catalogue(payload)) known_.try_emplace(hash(payload), std::move(*catalogue));
  }
  SharedCatalogue find(std::uint64_t id) const {
    const auto found = known_.find(id);
    return found == known_.end() ? SharedCatalogue() : found->second;
  }

 private:
  std::map<std::uint64_t, SharedCatalogue> known_;
};

std::optional<DecisionRecord> find_inside(std::string_view content, const TraceId& id) {
  Catalogues catalogues;
  Frames frames(content);
  while (const auto payload = frames.next()) {
    if (kind_of(*payload) == PayloadKind::catalogue) catalogues.add(*payload);
    const auto head = decode_head(*payload);
    if (head && head->trace == id.bytes()) return decode_record(*payload, catalogues.find(head->catalogue));
  }
  return std::nullopt;
}

// Newest first.
std::vector<DecisionRecord> last_inside(std::string_view content, std::size_t count) {
  Catalogues catalogues;
  std::vector<std::string_view> records;
  Frames frames(content);
  while (const auto payload = frames.next()) {
    if (kind_of(*payload) == PayloadKind::catalogue) catalogues.add(*payload);
    if (kind_of(*payload) == PayloadKind::record) records.push_back(*payload);
  }
  std::vector<DecisionRecord> out;
  for (auto record = records.rbegin(); record != records.rend() && out.size() < count; ++record) {
    const auto head = decode_head(*record);
    if (!head) continue;
    if (auto decoded = decode_record(*record, catalogues.find(head->catalogue))) out.push_back(std::move(*decoded));
  }
  return out;
}

// The segments in the order in which to look: a record is written after its id was made, so the first segment
// that can hold it is the last one that started before; the ones before come last, for clocks that were set back.
void order_for(std::vector<Segment>& segments, std::uint64_t made) {
  const auto after = std::ranges::find_if(segments, [&](const Segment& segment) { return segment.start > made; });
  if (after == segments.begin()) return;
  std::rotate(segments.begin(), after - 1, segments.end());
}

}  // namespace

Result<std::optional<DecisionRecord>> find_in(const std::filesystem::path& folder, const TraceId& id) {
  auto segments = list_segments(folder);
  if (!segments) return std::unexpected(std::move(segments.error()));
  order_for(*segments, id.unix_milliseconds());
  for (const Segment& segment : *segments) {
    const auto content = read_segment(segment.path);
    if (!content) return std::unexpected(content.error());
    if (!*content) continue;
    if (auto found = find_inside(**content, id)) return found;
  }
  return std::nullopt;
}

Result<std::vector<DecisionRecord>> recent_in(const std::filesystem::path& folder, std::size_t count) {
  const auto segments = list_segments(folder);
  if (!segments) return std::unexpected(segments.error());
  std::vector<DecisionRecord> out;
  for (auto segment = segments->rbegin(); segment != segments->rend() && out.size() < count; ++segment) {
    const auto content = read_segment(segment->path);
    if (!content) return std::unexpected(content.error());
    if (!*content) continue;
    for (auto& record : last_inside(**content, count - out.size())) out.push_back(std::move(record));
  }
  return out;
}

}  // namespace molly::traces
