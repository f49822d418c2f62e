#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/kernels/attention.h"

namespace molly::engine {

enum class PageUse : std::uint8_t { free, kv, adapter };

// Numbers of pages and who holds them; the bytes are the executor's. One pool for keys, values and adapters
// (S-LoRA, arXiv 2311.03285, section 5.1, with pages of bytes instead of rows). Used by the engine's thread only.
//
// A page is free, or held by one or more references. Reference counts express sharing: of a prefix's full pages between
// sequences and the prefix tree. Adapter pages are held by their adapter and by every step that uses them.
class PagePool {
 public:
  explicit PagePool(std::uint32_t pages);

  // All or nothing; the new pages have one reference. Nothing when fewer are free.
  std::optional<std::vector<PageId>> allocate(std::uint32_t count, PageUse use);
  void retain(PageId page);
  void retain(std::span<const PageId> pages);
  // True when that was the last reference, and the page is free again.
  bool release(PageId page);
  void release(std::span<const PageId> pages);

  std::uint32_t references(PageId page) const { return references_[index(page)]; }
  PageUse use(PageId page) const { return uses_[index(page)]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(references_.size()); }
  std::uint32_t free() const { return static_cast<std::uint32_t>(free_.size()); }
  std::uint32_t held(PageUse use) const { return held_[static_cast<std::size_t>(use)]; }

 private:
  std::size_t index(PageId page) const;

  std::vector<std::uint32_t> references_;
  std::vector<PageUse> uses_;
  std::vector<PageId> free_;
  std::uint32_t held_[3] = {};
};

}  // namespace molly::engine
