#include <gmock/gmock.h>

#include <thread>

#include "memory_adapter_cache_fixture.h"

namespace molly::engine {
namespace {

TEST_F(AdapterCacheTest, many_that_wait_for_one_adapter_cause_one_read) {
  files.hold();
  const auto id = add("a");
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(*acquire(id));
  files.let_go();
  wait_for_loads(1);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(*acquire(id));
  EXPECT_EQ(files.reads(), 1);
  EXPECT_EQ(status(id).users, 5U);
}

TEST_F(AdapterCacheTest, drops_the_images_used_longest_ago_when_host_memory_is_full) {
  options.warm_bytes = 4 * cache_page_bytes;
  const auto a = add("a");
  const auto b = add("b");
  const auto c = add("c");
  for (const auto id : {a, b, c}) use(id);
  EXPECT_EQ(state(a), AdapterState::hot);
  for (int i = 0; i < 3; ++i) cache().evict_cheapest(now);
  EXPECT_EQ(state(a), AdapterState::cold) << "its image was dropped while it was hot";
  EXPECT_EQ(state(b), AdapterState::warm);
  EXPECT_EQ(state(c), AdapterState::warm);
}

TEST_F(AdapterCacheTest, an_image_larger_than_the_budget_still_gets_hot) {
  options.warm_bytes = 1;
  const auto id = add("a");
  make_hot(id);
  cache().release(id);
  cache().evict_cheapest(now);
  EXPECT_EQ(state(id), AdapterState::cold);
}

TEST_F(AdapterCacheTest, what_nobody_waits_for_any_more_is_dropped_beyond_the_budget) {
  options.warm_bytes = 1;
  const auto id = add("a");
  EXPECT_FALSE(*acquire(id));
  wait_for_loads(1);
  EXPECT_EQ(state(id), AdapterState::warm);
  now += 6s;
  cache().poll(now);
  EXPECT_EQ(state(id), AdapterState::cold);
}

TEST_F(AdapterCacheTest, reads_no_more_than_fits_host_memory_ahead_of_the_pool) {
  options.warm_bytes = 4 * cache_page_bytes;
  const auto kv = *pool.allocate(6, PageUse::kv);
  std::vector<AdapterId> ids;
  for (const char* name : {"a", "b", "c", "d", "e"}) ids.push_back(add(name));
  EXPECT_FALSE(*acquire(ids[0]));
  wait_for_loads(1);
  for (const auto id : ids) EXPECT_FALSE(*acquire(id));
  wait_for_loads(1);
  for (const auto id : ids) EXPECT_FALSE(*acquire(id));
  EXPECT_EQ(files.reads(), 2);
  pool.release(kv);
  EXPECT_TRUE(*acquire(ids[0]));
  EXPECT_TRUE(*acquire(ids[1]));
  EXPECT_FALSE(*acquire(ids[2]));
  wait_for_loads(1);
  EXPECT_TRUE(*acquire(ids[2]));
}

TEST_F(AdapterCacheTest, a_failed_load_says_why_and_is_tried_again_after_a_while) {
  const auto id = add("a");
  files.put("a", failure(ErrorCode::invalid_request, "its rank is 0"));
  EXPECT_FALSE(*acquire(id));
  wait_for_loads(1);
  EXPECT_EQ(state(id), AdapterState::failed);
  EXPECT_EQ(status(id).reason, "its rank is 0");
  EXPECT_EQ(acquire(id).error().message, "its rank is 0");
  files.put("a", image_of(1, std::byte{'a'}));
  now += 4s;
  EXPECT_FALSE(acquire(id));
  now += 2s;
  EXPECT_TRUE(acquire(id));
  wait_for_loads(1);
  EXPECT_TRUE(*acquire(id));
  EXPECT_EQ(status(id).reason, "");
}

TEST_F(AdapterCacheTest, a_reader_that_throws_is_a_failed_load) {
  const auto id = *cache().add("a", "no such file", "1");
  EXPECT_FALSE(*acquire(id));
  wait_for_loads(1);
  EXPECT_EQ(acquire(id).error().code, ErrorCode::internal);
}

TEST_F(AdapterCacheTest, an_adapter_removed_while_it_is_read_is_forgotten) {
  files.hold();
  const auto a = add("a");
  const auto b = add("b");
  EXPECT_FALSE(*acquire(a));
  EXPECT_FALSE(*acquire(b));
  ASSERT_TRUE(cache().remove("a"));
  files.let_go();
  wait_for_loads(2);
  EXPECT_TRUE(*acquire(b));
  EXPECT_EQ(cache().status().size(), 1U);
  EXPECT_FALSE(cache().remove("a"));
}

TEST_F(AdapterCacheTest, prefetch_reads_into_host_memory_while_there_is_room) {
  options.warm_bytes = 4 * cache_page_bytes;
  const auto a = add("a");
  const auto b = add("b");
  const auto c = add("c");
  for (const auto id : {a, b}) {
    cache().prefetch(id);
    wait_for_loads(1);
    EXPECT_EQ(state(id), AdapterState::warm);
  }
  cache().prefetch(c);
  EXPECT_EQ(state(c), AdapterState::cold);
  EXPECT_TRUE(*acquire(a));
}

TEST_F(AdapterCacheTest, what_is_wanted_goes_before_what_is_prefetched) {
  files.hold();
  const auto first = add("f");
  const auto hinted = add("h");
  const auto wanted = add("w");
  EXPECT_FALSE(*acquire(first));
  cache().prefetch(hinted);
  EXPECT_FALSE(*acquire(wanted));
  files.let_go();
  wait_for_loads(2);
  EXPECT_EQ(state(wanted), AdapterState::warm);
  EXPECT_EQ(state(hinted), AdapterState::loading);
  wait_for_loads(1);
  EXPECT_EQ(state(hinted), AdapterState::warm);
}

TEST_F(AdapterCacheTest, ends_in_the_middle_of_a_read) {
  files.hold();
  const auto a = add("a");
  const auto b = add("b");
  EXPECT_FALSE(*acquire(a));
  EXPECT_FALSE(*acquire(b));
  const std::jthread later([&] {
    std::this_thread::sleep_for(20ms);
    files.let_go();
  });
  cache_.reset();
  EXPECT_LE(files.reads(), 1);
  EXPECT_EQ(pool.free(), pool.size());
}

}  // namespace
}  // namespace molly::engine
