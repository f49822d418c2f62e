#include "engine/service/pool_pages.h"

#include <limits>

#include "base/text.h"
#include "engine/memory/page_pool.h"

namespace molly::engine {

// One page for a sequence and one for an adapter are the least.
Result<std::uint32_t> pages_of_pool(std::uint64_t pool_bytes, std::uint64_t page_bytes, const std::string& field) {
  constexpr std::uint64_t least = 2;
  constexpr std::uint64_t most = std::numeric_limits<PageId>::max();
  const std::uint64_t pages = pool_bytes / page_bytes;
  if (pages >= least && pages <= most) return static_cast<std::uint32_t>(pages);
  return failure(ErrorCode::invalid_request,
                 "a pool of " + base::human_size(pool_bytes) + " has " + std::to_string(pages) + " pages of " +
                     base::human_size(page_bytes) + ": it takes " + std::to_string(least) + " to " +
                     std::to_string(most),
                 field);
}

}  // namespace molly::engine
