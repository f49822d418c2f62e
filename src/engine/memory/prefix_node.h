#pragma once

#include <algorithm>
#include <memory>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "engine/memory/eviction.h"
#include "engine/memory/prefix_tree.h"

namespace molly::engine {

struct PrefixNode;

// Siblings differ in their first page, so that page is what they are looked up by.
struct FirstPageOrder {
  using is_transparent = void;
  std::size_t page_tokens;

  std::span<const Token> first_page(const PrefixNode& node) const;
  std::span<const Token> first_page(std::span<const Token> tokens) const { return tokens.first(page_tokens); }
  bool operator()(const auto& left, const auto& right) const {
    return std::ranges::lexicographical_compare(first_page(dereferenced(left)), first_page(dereferenced(right)));
  }

 private:
  static const PrefixNode& dereferenced(const std::unique_ptr<PrefixNode>& node) { return *node; }
  static std::span<const Token> dereferenced(std::span<const Token> tokens) { return tokens; }
};

using PrefixNodes = std::set<std::unique_ptr<PrefixNode>, FirstPageOrder>;

// An edge of the tree with what lies below it. A root has no pages and no parent.
struct PrefixNode {
  explicit PrefixNode(std::size_t page_tokens) : children(FirstPageOrder{page_tokens}) {}

  std::vector<Token> tokens;  // pages.size() * page_tokens
  std::vector<PageId> pages;
  PrefixNodes children;
  PrefixNode* parent = nullptr;
  UseRate use;
  UseRate::Clock::time_point last_use{};
};

inline std::span<const Token> FirstPageOrder::first_page(const PrefixNode& node) const {
  return first_page(std::span<const Token>(node.tokens));
}

// Cheapest to lose first. All pages of a tree cost the same to compute, so this is the order of keep_score() too.
struct CheapestFirst {
  bool operator()(const PrefixNode* left, const PrefixNode* right) const {
    const auto key = [](const PrefixNode* node) { return std::tuple(node->use.standing(), node->last_use, node); };
    return key(left) < key(right);
  }
};

}  // namespace molly::engine
