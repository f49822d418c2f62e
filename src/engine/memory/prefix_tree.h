#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/memory/page_pool.h"

namespace molly::engine {

using Token = std::int32_t;

// Whose cached prefixes may be shared, and which weights computed them. Keys and values depend on the adapter, so
// nothing is shared across adapters or versions of one.
struct PrefixKey {
  std::string domain;       // from the control plane: member and label, opaque here; empty: private, never shared
  std::string computation;  // model, adapters with versions and weights
  auto operator<=>(const PrefixKey&) const = default;
};

// Full pages of finished and running sequences by their tokens, in a radix tree for each key (SGLang's RadixAttention,
// arXiv 2312.07104, section 3). The tree holds one reference to each page that it knows. Edges are whole pages: what a
// half-filled last page holds is copied by whoever continues it (copy-on-write).
class PrefixTree {
 public:
  using Clock = std::chrono::steady_clock;

  // `pool` must outlive the tree. `prefill_milliseconds`: of one token, what a lost prefix costs to compute again.
  PrefixTree(PagePool& pool, std::uint32_t page_tokens, double prefill_milliseconds = 1.0);
  ~PrefixTree();
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;

  // As measured since.
  void set_prefill_milliseconds(double per_token);

  struct Match {
    std::vector<PageId> pages;  // full pages, each with a reference for the caller
    std::uint32_t tokens = 0;   // that they hold: pages.size() * page_tokens
  };
  // The longest cached prefix of `tokens`, at most `tokens.size() - 1` long: the last token must be computed to have
  // logits. Nothing for a private key.
  Match match(const PrefixKey& key, std::span<const Token> tokens, Clock::time_point now);

  // Remembers the full pages of a sequence. Pages for tokens that are known already stay as they are: the caller's
  // copies are not kept. A private key's are not remembered.
  void insert(const PrefixKey& key, std::span<const Token> tokens, std::span<const PageId> pages,
              Clock::time_point now);

  // The cached leaf that is cheapest to lose and that nobody else uses; nothing when every page is in use.
  struct Candidate {
    double score = 0;  // milliseconds of work saved per page and second, see eviction.h
    std::uint32_t pages = 0;
  };
  std::optional<Candidate> cheapest(Clock::time_point now) const;
  // Drops that leaf's pages, or only its last ones where `most` is less; how many became free.
  std::uint32_t evict_cheapest(Clock::time_point now, std::uint32_t most = UINT32_MAX);

  // Forgets everything of a computation whose adapter was removed or replaced, or of all.
  void forget(std::string_view computation);
  void clear();

  std::uint32_t pages() const;  // held by the tree

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace molly::engine
