#include "engine/adapters/row_packing.h"

namespace molly::engine {

std::optional<RowPacking::Place> RowPacking::place(std::size_t bytes) {
  bytes = (bytes + alignment - 1) / alignment * alignment;
  if (bytes > page_bytes_) return std::nullopt;
  auto fullest = pages_by_room_.lower_bound(bytes);
  if (fullest == pages_by_room_.end()) fullest = pages_by_room_.emplace(page_bytes_, pages_++);
  const auto [room, page] = *fullest;
  pages_by_room_.erase(fullest);
  if (room > bytes) pages_by_room_.emplace(room - bytes, page);
  return Place{.page = page, .offset = static_cast<std::uint32_t>(page_bytes_ - room)};
}

}  // namespace molly::engine
