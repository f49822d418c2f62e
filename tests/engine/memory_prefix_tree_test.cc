#include "engine/memory/prefix_tree.h"

#include <gmock/gmock.h>

#include <numeric>

namespace molly::engine {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

constexpr std::uint32_t page_tokens = 4;
const PrefixKey key{"team", "base"};

class PrefixTreeTest : public testing::Test {
 protected:
  // What a sequence does: takes pages for its tokens, remembers them in the tree and ends.
  std::vector<PageId> run(const std::vector<Token>& tokens, const PrefixKey& whose = key) {
    const auto pages = *pool.allocate(static_cast<std::uint32_t>(tokens.size() + 3) / page_tokens, PageUse::kv);
    tree.insert(whose, tokens, pages, now);
    pool.release(pages);
    return pages;
  }

  std::uint32_t cached(const std::vector<Token>& tokens, const PrefixKey& whose = key) {
    const auto match = tree.match(whose, tokens, now);
    pool.release(match.pages);
    return match.tokens;
  }

  static std::vector<Token> counting(Token first, std::size_t count) {
    std::vector<Token> tokens(count);
    std::iota(tokens.begin(), tokens.end(), first);
    return tokens;
  }

  PagePool pool{64};
  PrefixTree tree{pool, page_tokens};
  PrefixTree::Clock::time_point now{1h};
};

TEST_F(PrefixTreeTest, finds_the_full_pages_of_what_was_computed) {
  const auto pages = run(counting(0, 10));
  const auto match = tree.match(key, counting(0, 12), now);
  EXPECT_EQ(match.tokens, 8U);
  EXPECT_THAT(match.pages, ElementsAre(pages[0], pages[1]));
  EXPECT_EQ(pool.references(pages[0]), 2U);
  EXPECT_EQ(pool.references(pages[2]), 0U) << "a page that is not full is not kept";
  pool.release(match.pages);
}

TEST_F(PrefixTreeTest, leaves_the_last_token_to_be_computed) {
  run(counting(0, 8));
  EXPECT_EQ(cached(counting(0, 8)), 4U);
  EXPECT_EQ(cached(counting(0, 9)), 8U);
  EXPECT_EQ(cached(counting(0, 4)), 0U);
  EXPECT_EQ(cached({}), 0U);
}

TEST_F(PrefixTreeTest, keeps_the_pages_it_has_when_the_same_comes_again) {
  const auto first = run(counting(0, 8));
  const auto second = run(counting(0, 12));
  const auto match = tree.match(key, counting(0, 13), now);
  EXPECT_THAT(match.pages, ElementsAre(first[0], first[1], second[2]));
  EXPECT_EQ(tree.pages(), 3U);
  pool.release(match.pages);
}

TEST_F(PrefixTreeTest, branches_where_conversations_part) {
  auto left = counting(0, 12);
  auto right = counting(0, 12);
  right[9] = 99;
  run(left);
  run(right);
  EXPECT_EQ(tree.pages(), 4U);
  left.push_back(0);
  right.push_back(0);
  EXPECT_EQ(cached(left), 12U);
  EXPECT_EQ(cached(right), 12U);
}

TEST_F(PrefixTreeTest, parts_only_at_page_borders) {
  auto other = counting(0, 9);
  other[6] = 99;
  run(counting(0, 9));
  EXPECT_EQ(cached(other), 4U);
}

TEST_F(PrefixTreeTest, shares_nothing_across_domains_or_computations) {
  run(counting(0, 9));
  EXPECT_EQ(cached(counting(0, 9), {"other team", "base"}), 0U);
  EXPECT_EQ(cached(counting(0, 9), {"team", "base + adapter"}), 0U);
}

TEST_F(PrefixTreeTest, remembers_nothing_that_is_private) {
  run(counting(0, 9), {"", "base"});
  EXPECT_EQ(tree.pages(), 0U);
  EXPECT_EQ(cached(counting(0, 9), {"", "base"}), 0U);
  EXPECT_EQ(pool.free(), pool.size());
}

TEST_F(PrefixTreeTest, loses_what_is_used_least_first) {
  run(counting(0, 5));
  run(counting(100, 5));
  now += 1s;
  cached(counting(0, 5));
  EXPECT_EQ(tree.evict_cheapest(now), 1U);
  EXPECT_EQ(cached(counting(0, 5)), 4U);
  EXPECT_EQ(cached(counting(100, 5)), 0U);
}

TEST_F(PrefixTreeTest, loses_what_was_used_longest_ago_of_equals) {
  run(counting(0, 5));
  now += 1s;
  run(counting(100, 5));
  tree.evict_cheapest(now);
  EXPECT_EQ(cached(counting(0, 5)), 0U);
  EXPECT_EQ(cached(counting(100, 5)), 4U);
}

TEST_F(PrefixTreeTest, loses_leaves_before_what_they_stand_on) {
  run(counting(0, 4));
  run(counting(0, 12));
  EXPECT_EQ(tree.evict_cheapest(now), 2U);
  EXPECT_EQ(tree.pages(), 1U);
  EXPECT_EQ(tree.evict_cheapest(now), 1U);
  EXPECT_EQ(tree.evict_cheapest(now), 0U);
  EXPECT_EQ(pool.free(), pool.size());
}

TEST_F(PrefixTreeTest, can_lose_only_the_end_of_a_leaf) {
  run(counting(0, 20));
  EXPECT_EQ(tree.evict_cheapest(now, 2), 2U);
  EXPECT_EQ(tree.pages(), 3U);
  EXPECT_EQ(cached(counting(0, 21)), 12U);
}

TEST_F(PrefixTreeTest, does_not_lose_what_a_sequence_uses) {
  run(counting(0, 12));
  const auto match = tree.match(key, counting(0, 9), now);
  EXPECT_EQ(tree.evict_cheapest(now), 1U) << "the page beyond the match";
  EXPECT_FALSE(tree.cheapest(now));
  EXPECT_EQ(tree.evict_cheapest(now), 0U);
  pool.release(match.pages);
  EXPECT_EQ(tree.evict_cheapest(now), 2U);
}

TEST_F(PrefixTreeTest, values_a_page_by_the_prefill_that_it_saves) {
  run(counting(0, 9));
  const auto at_default = tree.cheapest(now);
  tree.set_prefill_milliseconds(5);
  const auto slower = tree.cheapest(now);
  ASSERT_TRUE(at_default && slower);
  EXPECT_EQ(at_default->pages, 2U);
  EXPECT_GT(at_default->score, 0);
  EXPECT_DOUBLE_EQ(slower->score, 5 * at_default->score);
  EXPECT_LT(tree.cheapest(now + 10min)->score, slower->score / 1000) << "worth less when nobody comes back to it";
}

TEST_F(PrefixTreeTest, forgets_a_computation_in_every_domain) {
  run(counting(0, 9), {"a", "adapter@1"});
  run(counting(0, 9), {"b", "adapter@1"});
  run(counting(0, 9), {"a", "adapter@2"});
  tree.forget("adapter@1");
  EXPECT_EQ(tree.pages(), 2U);
  EXPECT_EQ(cached(counting(0, 9), {"a", "adapter@2"}), 8U);
}

TEST_F(PrefixTreeTest, what_was_forgotten_lives_on_for_the_sequence_that_uses_it) {
  run(counting(0, 9));
  const auto match = tree.match(key, counting(0, 9), now);
  tree.clear();
  EXPECT_EQ(tree.pages(), 0U);
  EXPECT_EQ(pool.held(PageUse::kv), 2U);
  pool.release(match.pages);
  EXPECT_EQ(pool.free(), pool.size());
}

}  // namespace
}  // namespace molly::engine
