#include <gmock/gmock.h>

#include "memory_adapter_cache_fixture.h"

namespace molly::engine {
namespace {

using testing::HasSubstr;

TEST_F(AdapterCacheTest, an_adapter_goes_from_cold_to_hot) {
  files.hold();
  const auto id = add("a");
  EXPECT_EQ(state(id), AdapterState::cold);
  EXPECT_FALSE(*acquire(id));
  EXPECT_EQ(state(id), AdapterState::loading);
  files.let_go();
  wait_for_loads(1);
  EXPECT_EQ(state(id), AdapterState::warm);
  const auto resident = acquire(id);
  ASSERT_TRUE(*resident);
  EXPECT_EQ(state(id), AdapterState::hot);
  EXPECT_EQ((**resident)->factors(0, Projection::attn_q).rank(), 1U);
  EXPECT_EQ(*(**resident)->factors(0, Projection::attn_q).b[0], std::byte{'a'});
  EXPECT_EQ(pool.held(PageUse::adapter), 2U);
  EXPECT_EQ(status(id).users, 1U);
  EXPECT_EQ(status(id).bytes, 2 * cache_page_bytes);
  EXPECT_EQ(cache().counters().loads, 1U);
  EXPECT_EQ(cache().counters().promotions, 1U);
  EXPECT_EQ(cache().counters().hits, 0U);
  ASSERT_TRUE(*acquire(id));
  EXPECT_EQ(cache().counters().hits, 1U);
}

TEST_F(AdapterCacheTest, takes_pages_from_idle_adapters_and_keeps_them_warm) {
  const auto a = add("a");
  const auto b = add("b", 6);
  use(a);
  make_hot(b);
  EXPECT_EQ(state(a), AdapterState::warm);
  EXPECT_EQ(cache().counters().evictions, 1U);
  EXPECT_FALSE(*acquire(a)) << "b is in use";
  cache().release(b);
  ASSERT_TRUE(*acquire(a));
  EXPECT_EQ(files.reads(), 2) << "a was not read again";
}

TEST_F(AdapterCacheTest, takes_nothing_from_adapters_in_use_and_evicts_nothing_in_vain) {
  const auto idle = add("i");
  const auto used = add("u");
  const auto large = add("l", 5);
  use(idle);
  make_hot(used);
  EXPECT_FALSE(*acquire(large));
  wait_for_loads(1);
  std::uint32_t asked = 0;
  make_room = [&](std::uint32_t pages) {
    asked = pages;
    return false;
  };
  EXPECT_FALSE(*acquire(large));
  EXPECT_EQ(asked, 1U) << "two are free, two can be taken from the idle one";
  EXPECT_EQ(state(idle), AdapterState::hot);
}

TEST_F(AdapterCacheTest, has_room_made_by_others_when_adapters_do_not_suffice) {
  auto cached_prefix = *pool.allocate(5, PageUse::kv);
  const auto id = add("a");
  EXPECT_FALSE(*acquire(id));
  wait_for_loads(1);
  make_room = [&](std::uint32_t pages) {
    pool.release(std::span(cached_prefix).last(pages));
    cached_prefix.resize(cached_prefix.size() - pages);
    return true;
  };
  EXPECT_TRUE(*acquire(id));
  EXPECT_EQ(cached_prefix.size(), 4U);
}

TEST_F(AdapterCacheTest, evicts_the_one_that_is_used_least) {
  const auto often = add("o");
  const auto seldom = add("s");
  const auto fresh = add("f", 4);
  for (int i = 0; i < 5; ++i) use(often);
  use(seldom);
  use(fresh);
  EXPECT_EQ(state(often), AdapterState::hot);
  EXPECT_EQ(state(seldom), AdapterState::warm);
}

TEST_F(AdapterCacheTest, offers_the_cheapest_idle_adapter_for_eviction) {
  EXPECT_FALSE(cache().cheapest(now));
  const auto id = add("a");
  make_hot(id);
  EXPECT_FALSE(cache().cheapest(now)) << "in use";
  cache().release(id);
  const auto candidate = cache().cheapest(now);
  ASSERT_TRUE(candidate);
  EXPECT_EQ(candidate->pages, 2U);
  EXPECT_GT(candidate->score, 0);
  EXPECT_LT(cache().cheapest(now + 10min)->score, candidate->score);
  EXPECT_EQ(cache().evict_cheapest(now), 2U);
  EXPECT_EQ(cache().evict_cheapest(now), 0U);
  EXPECT_EQ(pool.free(), pool.size());
}

TEST_F(AdapterCacheTest, an_adapter_that_a_step_still_holds_is_not_evicted) {
  const auto id = add("a");
  use(id);
  pool.retain(PageId{0});
  EXPECT_FALSE(cache().cheapest(now));
  pool.release(PageId{0});
  EXPECT_TRUE(cache().cheapest(now));
}

TEST_F(AdapterCacheTest, an_adapter_larger_than_the_pool_is_refused) {
  const auto id = add("a", 7);
  EXPECT_FALSE(*acquire(id));
  wait_for_loads(1);
  const auto refused = acquire(id);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::overloaded);
  EXPECT_THAT(refused.error().message, HasSubstr("7 pages, the whole pool has 6"));
}

TEST_F(AdapterCacheTest, an_adapter_removed_while_used_stays_for_its_users_only) {
  const auto id = add("a");
  make_hot(id);
  make_hot(id);
  ASSERT_TRUE(cache().remove("a"));
  EXPECT_FALSE(cache().find("a"));
  EXPECT_TRUE(cache().status().empty());
  EXPECT_EQ(acquire(id).error().code, ErrorCode::not_found);
  const auto successor = add("a");
  EXPECT_NE(successor, id);
  cache().release(id);
  EXPECT_EQ(pool.held(PageUse::adapter), 2U);
  cache().release(id);
  EXPECT_EQ(pool.free(), pool.size());
}

TEST_F(AdapterCacheTest, refuses_names_that_are_taken_or_no_names) {
  add("a");
  EXPECT_EQ(cache().add("a", "b", "2").error().code, ErrorCode::conflict);
  for (const auto& name : {std::string(), std::string(201, 'x'), std::string("\xff"), std::string("a\nb")}) {
    EXPECT_EQ(cache().add(name, "file", "1").error().code, ErrorCode::invalid_request);
  }
  EXPECT_TRUE(cache().add("Übersetzung/日本語", "file", "1"));
  EXPECT_TRUE(cache().add(std::string(200, 'x'), "file", "1"));
}

TEST_F(AdapterCacheTest, any_sequence_of_operations_keeps_the_books) {
  options.warm_bytes = 5 * cache_page_bytes;
  std::vector<AdapterId> held;
  std::uint64_t random = 1;
  const auto draw = [&](std::uint64_t below) {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    return (random >> 33) % below;
  };
  for (int step = 0; step < 4000; ++step) {
    now += std::chrono::milliseconds(draw(1000));
    const std::string name(1, static_cast<char>('a' + draw(8)));
    const auto id = cache().find(name);
    switch (draw(8)) {
      case 0: cache().poll(now); break;
      case 1: cache().evict_cheapest(now); break;
      case 2: cache().prefetch(id.value_or(0)); break;
      case 3:
        if (draw(10) == 0) {
          EXPECT_EQ(cache().remove(name).has_value(), id.has_value());
        }
        break;
      case 4:
      case 5:
        if (!held.empty()) {
          cache().release(held.back());
          held.pop_back();
        }
        break;
      default:
        if (!id) {
          add(name, static_cast<std::uint32_t>(1 + draw(3)));
        } else if (const auto got = acquire(*id); got && *got) {
          held.insert(held.begin() + static_cast<long>(draw(held.size() + 1)), *id);
        }
    }
    std::uint32_t users = 0;
    std::uint32_t hot_pages = 0;
    for (const auto& status : cache().status()) {
      users += status.users;
      hot_pages += status.state == AdapterState::hot ? status.pages : 0;
    }
    ASSERT_LE(users, held.size());
    ASSERT_LE(hot_pages, pool.held(PageUse::adapter));
    ASSERT_EQ(pool.free() + pool.held(PageUse::adapter), pool.size());
  }
  for (const auto id : held) cache().release(id);
  while (cache().evict_cheapest(now) > 0) {
  }
  EXPECT_EQ(pool.free(), pool.size());
}

}  // namespace
}  // namespace molly::engine
