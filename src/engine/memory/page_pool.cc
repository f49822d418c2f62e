#include "engine/memory/page_pool.h"

#include <cassert>
#include <limits>

namespace molly::engine {

PagePool::PagePool(std::uint32_t pages) : references_(pages, 0), uses_(pages, PageUse::free) {
  assert(pages <= static_cast<std::uint32_t>(std::numeric_limits<PageId>::max()));
  free_.reserve(pages);
  for (std::uint32_t page = pages; page > 0; --page) free_.push_back(static_cast<PageId>(page - 1));
  held_[static_cast<std::size_t>(PageUse::free)] = pages;
}

std::size_t PagePool::index(PageId page) const {
  assert(page >= 0 && static_cast<std::size_t>(page) < references_.size());
  return static_cast<std::size_t>(page);
}

std::optional<std::vector<PageId>> PagePool::allocate(std::uint32_t count, PageUse use) {
  assert(use != PageUse::free);
  if (count > free_.size()) return std::nullopt;
  std::vector<PageId> pages(free_.rbegin(), free_.rbegin() + count);
  free_.resize(free_.size() - count);
  for (const PageId page : pages) {
    assert(references_[index(page)] == 0);
    references_[index(page)] = 1;
    uses_[index(page)] = use;
  }
  held_[static_cast<std::size_t>(PageUse::free)] -= count;
  held_[static_cast<std::size_t>(use)] += count;
  return pages;
}

void PagePool::retain(PageId page) {
  assert(references(page) > 0 && "a free page cannot be shared");
  ++references_[index(page)];
}

void PagePool::retain(std::span<const PageId> pages) {
  for (const PageId page : pages) retain(page);
}

bool PagePool::release(PageId page) {
  assert(references(page) > 0 && "released more often than held");
  if (--references_[index(page)] > 0) return false;
  --held_[static_cast<std::size_t>(use(page))];
  ++held_[static_cast<std::size_t>(PageUse::free)];
  uses_[index(page)] = PageUse::free;
  free_.push_back(page);
  return true;
}

void PagePool::release(std::span<const PageId> pages) {
  for (const PageId page : pages) release(page);
}

}  // namespace molly::engine
