#include "engine/memory/page_pool.h"

#include <gmock/gmock.h>

#include <map>
#include <random>

namespace molly::engine {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

TEST(PagePool, hands_out_all_or_nothing) {
  PagePool pool(4);
  const auto three = pool.allocate(3, PageUse::kv);
  ASSERT_TRUE(three);
  EXPECT_THAT(*three, ElementsAre(0, 1, 2));
  EXPECT_FALSE(pool.allocate(2, PageUse::adapter));
  EXPECT_EQ(pool.free(), 1U);
  EXPECT_THAT(pool.allocate(0, PageUse::kv), testing::Optional(SizeIs(0)));
}

TEST(PagePool, a_page_is_free_after_its_last_reference) {
  PagePool pool(1);
  const PageId page = pool.allocate(1, PageUse::adapter)->front();
  pool.retain(page);
  EXPECT_EQ(pool.use(page), PageUse::adapter);
  EXPECT_FALSE(pool.release(page));
  EXPECT_FALSE(pool.allocate(1, PageUse::kv));
  EXPECT_TRUE(pool.release(page));
  EXPECT_EQ(pool.use(page), PageUse::free);
  EXPECT_TRUE(pool.allocate(1, PageUse::kv));
}

TEST(PagePool, counts_pages_by_their_use) {
  PagePool pool(10);
  const auto kv = *pool.allocate(3, PageUse::kv);
  const auto adapter = *pool.allocate(2, PageUse::adapter);
  EXPECT_EQ(pool.held(PageUse::kv), 3U);
  EXPECT_EQ(pool.held(PageUse::adapter), 2U);
  EXPECT_EQ(pool.held(PageUse::free), 5U);
  pool.release(kv);
  EXPECT_EQ(pool.held(PageUse::kv), 0U);
  EXPECT_EQ(pool.held(PageUse::free), 8U);
}

#ifndef NDEBUG
TEST(PagePoolDeathTest, misuse_aborts_in_debug_builds) {
  PagePool pool(2);
  const PageId page = pool.allocate(1, PageUse::kv)->front();
  pool.release(page);
  EXPECT_DEATH(pool.release(page), "released more often than held");
  EXPECT_DEATH(pool.retain(page), "a free page cannot be shared");
  EXPECT_DEATH(pool.retain(7), "");
  EXPECT_DEATH(pool.retain(-1), "");
}
#endif

TEST(PagePool, any_sequence_of_operations_keeps_the_books) {
  constexpr std::uint32_t size = 24;
  std::mt19937 random(7);
  PagePool pool(size);
  std::map<PageId, std::uint32_t> references;
  for (int step = 0; step < 20'000; ++step) {
    const auto count = static_cast<std::uint32_t>(random() % 6);
    if (random() % 3 == 0) {
      const auto pages = pool.allocate(count, random() % 2 == 0 ? PageUse::kv : PageUse::adapter);
      ASSERT_EQ(pages.has_value(), count <= size - references.size());
      for (const PageId page : pages.value_or(std::vector<PageId>())) {
        ASSERT_TRUE(references.emplace(page, 1U).second) << "handed out twice";
      }
    } else if (!references.empty()) {
      const auto entry = std::next(references.begin(), static_cast<long>(random() % references.size()));
      if (random() % 3 == 0) {
        pool.retain(entry->first);
        ++entry->second;
      } else {
        ASSERT_EQ(pool.release(entry->first), entry->second == 1);
        if (--entry->second == 0) references.erase(entry);
      }
    }
    ASSERT_EQ(pool.free(), size - references.size());
    ASSERT_EQ(pool.held(PageUse::kv) + pool.held(PageUse::adapter), references.size());
    for (const auto& [page, held] : references) ASSERT_EQ(pool.references(page), held);
  }
}

}  // namespace
}  // namespace molly::engine
