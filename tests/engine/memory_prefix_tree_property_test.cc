#include <gmock/gmock.h>

#include <map>
#include <random>
#include <set>

#include "engine/memory/prefix_tree.h"

// Random operations against a model that any reader can check: a set of token strings, each a whole number of pages
// long.
namespace molly::engine {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t page_tokens = 2;
constexpr std::uint32_t pool_pages = 40;

class World {
 public:
  explicit World(unsigned seed) : random_(seed) {}

  void step() {
    now_ += std::chrono::milliseconds(random_() % 2000);
    switch (random_() % 8) {
      case 0:
      case 1:
      case 2: start(); break;
      case 3:
      case 4: finish(); break;
      case 5: evict(); break;
      case 6: grow_and_remember(); break;
      case 7:
        if (random_() % 20 == 0) forget();
        break;
    }
    check();
  }

  void end() {
    while (!running_.empty()) finish();
    while (tree_.evict_cheapest(now_) > 0) {
    }
    EXPECT_EQ(tree_.pages(), 0U);
    EXPECT_EQ(pool_.free(), pool_.size());
  }

 private:
  struct Sequence {
    PrefixKey key;
    std::vector<Token> tokens;
    std::vector<PageId> pages;
  };

  PrefixKey some_key() {
    return {random_() % 5 == 0 ? "" : random_() % 2 == 0 ? "a" : "b", random_() % 2 == 0 ? "base" : "adapter"};
  }

  // Few different tokens, so that prefixes meet often.
  std::vector<Token> some_tokens() {
    std::vector<Token> tokens(1 + random_() % 12);
    for (Token& token : tokens) token = static_cast<Token>(random_() % 2);
    return tokens;
  }

  void start() {
    Sequence sequence{some_key(), some_tokens(), {}};
    auto match = tree_.match(sequence.key, sequence.tokens, now_);
    ASSERT_EQ(match.tokens, match.pages.size() * page_tokens);
    ASSERT_LT(match.tokens, sequence.tokens.size());
    ASSERT_EQ(match.tokens, longest_known(sequence));
    const auto needed = (sequence.tokens.size() + page_tokens - 1) / page_tokens - match.pages.size();
    const auto fresh = pool_.allocate(static_cast<std::uint32_t>(needed), PageUse::kv);
    if (!fresh) return pool_.release(match.pages);
    sequence.pages = match.pages;
    sequence.pages.insert(sequence.pages.end(), fresh->begin(), fresh->end());
    for (std::size_t i = 0; i < match.pages.size(); ++i) ASSERT_EQ(content_[match.pages[i]], content_of(sequence, i));
    for (std::size_t i = match.pages.size(); i < sequence.pages.size(); ++i) {
      content_[sequence.pages[i]] = content_of(sequence, i);
    }
    running_.push_back(std::move(sequence));
  }

  // All that a page's keys and values depend on: whose they are, and every token up to the page's end.
  static std::string content_of(const Sequence& sequence, std::size_t page) {
    std::string content = sequence.key.domain + "/" + sequence.key.computation + "/";
    const auto end = std::min(sequence.tokens.size(), (page + 1) * page_tokens);
    for (std::size_t i = 0; i < end; ++i) content += std::to_string(sequence.tokens[i]);
    return content;
  }

  std::size_t longest_known(const Sequence& sequence) const {
    std::size_t pages = 0;
    while ((pages + 1) * page_tokens < sequence.tokens.size() && known_.contains(content_of(sequence, pages))) ++pages;
    return pages * page_tokens;
  }

  void remember(const Sequence& sequence) {
    tree_.insert(sequence.key, sequence.tokens, sequence.pages, now_);
    if (sequence.key.domain.empty()) return;
    for (std::size_t page = 0; (page + 1) * page_tokens <= sequence.tokens.size(); ++page) {
      known_.insert(content_of(sequence, page));
    }
  }

  void grow_and_remember() {
    if (running_.empty()) return;
    remember(running_[random_() % running_.size()]);
  }

  void finish() {
    if (running_.empty()) return;
    const auto chosen = running_.begin() + static_cast<long>(random_() % running_.size());
    remember(*chosen);
    pool_.release(chosen->pages);
    running_.erase(chosen);
  }

  void evict() {
    const auto candidate = tree_.cheapest(now_);
    const auto free = pool_.free();
    const auto freed = tree_.evict_cheapest(now_, random_() % 2 == 0 ? UINT32_MAX : 1);
    ASSERT_EQ(candidate.has_value(), freed > 0);
    ASSERT_EQ(pool_.free(), free + freed);
    ASSERT_LE(freed, candidate ? candidate->pages : 0);
    relearn();
  }

  void forget() {
    tree_.forget("adapter");
    std::erase_if(known_, [](const std::string& content) { return content.contains("/adapter/"); });
  }

  // After an eviction the model asks the tree what is left, and checks that nothing came and no hole was torn.
  void relearn() {
    std::set<std::string> left;
    for (const auto& content : known_) {
      if (still_known(content)) left.insert(content);
    }
    known_ = std::move(left);
    ASSERT_EQ(known_.size(), tree_.pages());
  }

  bool still_known(const std::string& content) {
    const auto first = content.find('/');
    const auto second = content.find('/', first + 1);
    std::vector<Token> tokens;
    for (const char digit : content.substr(second + 1)) tokens.push_back(digit - '0');
    tokens.push_back(9);
    const auto match =
        tree_.match({content.substr(0, first), content.substr(first + 1, second - first - 1)}, tokens, now_);
    pool_.release(match.pages);
    return match.tokens + 1 == tokens.size();
  }

  void check() {
    ASSERT_EQ(known_.size(), tree_.pages());
    std::map<PageId, std::uint32_t> held;
    for (const auto& sequence : running_) {
      for (const PageId page : sequence.pages) ++held[page];
    }
    std::uint32_t in_use = 0;
    std::uint32_t by_tree = 0;
    for (PageId page = 0; page < static_cast<PageId>(pool_pages); ++page) {
      const auto references = pool_.references(page);
      in_use += references > 0 ? 1U : 0U;
      ASSERT_GE(references, held[page]);
      ASSERT_LE(references, held[page] + 1) << "only the tree holds a page besides sequences, and once";
      by_tree += references - held[page];
    }
    ASSERT_EQ(by_tree, tree_.pages());
    ASSERT_EQ(in_use + pool_.free(), pool_.size());
  }

  std::mt19937 random_;
  PagePool pool_{pool_pages};
  PrefixTree tree_{pool_, page_tokens};
  PrefixTree::Clock::time_point now_{1h};
  std::vector<Sequence> running_;
  std::map<PageId, std::string> content_;
  std::set<std::string> known_;
};

TEST(PrefixTreeProperty, any_sequence_of_operations_keeps_the_books_and_the_contents) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    World world(seed);
    for (int i = 0; i < 600 && !testing::Test::HasFatalFailure(); ++i) world.step();
    world.end();
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace molly::engine
