#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace molly::engine {

// Puts rows into pages so that none straddles two: into the fullest page that still has room, else a new one (best
// fit). Packs well when rows come in order of falling size.
class RowPacking {
 public:
  static constexpr std::size_t alignment = 64;

  explicit RowPacking(std::size_t page_bytes) : page_bytes_(page_bytes) {}

  struct Place {
    std::uint32_t page = 0;
    std::uint32_t offset = 0;
  };
  // Nothing when the row is longer than a page.
  std::optional<Place> place(std::size_t bytes);

  std::uint32_t pages() const { return pages_; }

 private:
  std::size_t page_bytes_;
  std::uint32_t pages_ = 0;
  std::multimap<std::size_t, std::uint32_t> pages_by_room_;
};

}  // namespace molly::engine
