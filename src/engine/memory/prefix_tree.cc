#include "engine/memory/prefix_tree.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <set>

#include "engine/memory/prefix_node.h"

namespace molly::engine {

struct PrefixTree::State {
  PagePool& pool;
  std::size_t page_tokens;
  double prefill_milliseconds;
  std::map<PrefixKey, PrefixNode> roots;
  std::set<PrefixNode*, CheapestFirst> leaves;
  std::uint32_t pages = 0;

  std::vector<PrefixNode*> path_along(PrefixNode& root, std::span<const Token> tokens);
  PrefixNode* child_with(const PrefixNode& node, std::span<const Token> tokens) const;
  std::size_t common_pages(const PrefixNode& node, std::span<const Token> tokens) const;
  void split(PrefixNode& node, std::size_t first_pages);
  void note_use(PrefixNode& node, Clock::time_point now);
  void add_leaf(PrefixNode& parent, std::span<const Token> tokens, std::span<const PageId> run, Clock::time_point now);
  PrefixNode* cheapest_unused() const;
  void drop_leaf(PrefixNode& leaf);
  void drop_last(PrefixNode& leaf, std::size_t count);
  void drop_all_below(PrefixNode& root);
  void give_back(PrefixNode& node);
};

// The nodes from the root down that hold a prefix of `tokens`. One that holds only its beginning is split there.
std::vector<PrefixNode*> PrefixTree::State::path_along(PrefixNode& root, std::span<const Token> tokens) {
  std::vector<PrefixNode*> path;
  for (PrefixNode* node = child_with(root, tokens); node != nullptr; node = child_with(*node, tokens)) {
    const std::size_t common = common_pages(*node, tokens);
    if (common < node->pages.size()) split(*node, common);
    path.push_back(node);
    tokens = tokens.subspan(common * page_tokens);
  }
  return path;
}

PrefixNode* PrefixTree::State::child_with(const PrefixNode& node, std::span<const Token> tokens) const {
  if (tokens.size() < page_tokens) return nullptr;
  const auto found = node.children.find(tokens);
  return found == node.children.end() ? nullptr : found->get();
}

std::size_t PrefixTree::State::common_pages(const PrefixNode& node, std::span<const Token> tokens) const {
  const auto [difference, ignored] = std::ranges::mismatch(node.tokens, tokens);
  return static_cast<std::size_t>(difference - node.tokens.begin()) / page_tokens;
}

void PrefixTree::State::split(PrefixNode& node, std::size_t first_pages) {
  const auto first_tokens = static_cast<std::ptrdiff_t>(first_pages * page_tokens);
  const bool was_leaf = leaves.erase(&node) > 0;
  auto rest = std::make_unique<PrefixNode>(page_tokens);
  rest->tokens.assign(node.tokens.begin() + first_tokens, node.tokens.end());
  rest->pages.assign(node.pages.begin() + static_cast<std::ptrdiff_t>(first_pages), node.pages.end());
  rest->children = std::move(node.children);
  for (const auto& child : rest->children) child->parent = rest.get();
  rest->parent = &node;
  rest->use = node.use;
  rest->last_use = node.last_use;
  if (was_leaf) leaves.insert(rest.get());
  node.tokens.resize(static_cast<std::size_t>(first_tokens));
  node.pages.resize(first_pages);
  node.children = PrefixNodes(FirstPageOrder{page_tokens});
  node.children.insert(std::move(rest));
}

void PrefixTree::State::note_use(PrefixNode& node, Clock::time_point now) {
  const bool was_leaf = leaves.erase(&node) > 0;
  node.use.note_use(now);
  node.last_use = now;
  if (was_leaf) leaves.insert(&node);
}

void PrefixTree::State::add_leaf(PrefixNode& parent, std::span<const Token> tokens, std::span<const PageId> run,
                                 Clock::time_point now) {
  pool.retain(run);
  pages += static_cast<std::uint32_t>(run.size());
  auto leaf = std::make_unique<PrefixNode>(page_tokens);
  leaf->tokens.assign(tokens.begin(), tokens.end());
  leaf->pages.assign(run.begin(), run.end());
  leaf->parent = &parent;
  leaf->use.note_use(now);
  leaf->last_use = now;
  leaves.erase(&parent);
  leaves.insert(leaf.get());
  parent.children.insert(std::move(leaf));
}

PrefixNode* PrefixTree::State::cheapest_unused() const {
  const auto unused = [&](const PrefixNode* leaf) {
    return std::ranges::all_of(leaf->pages, [&](PageId page) { return pool.references(page) == 1; });
  };
  const auto found = std::ranges::find_if(leaves, unused);
  return found == leaves.end() ? nullptr : *found;
}

void PrefixTree::State::drop_leaf(PrefixNode& leaf) {
  PrefixNode& parent = *leaf.parent;
  give_back(leaf);
  parent.children.erase(parent.children.find(std::span<const Token>(leaf.tokens)));
  if (!parent.children.empty()) return;
  if (parent.parent != nullptr) {
    leaves.insert(&parent);
  } else {
    std::erase_if(roots, [&](const auto& entry) { return &entry.second == &parent; });
  }
}

void PrefixTree::State::drop_last(PrefixNode& leaf, std::size_t count) {
  const std::size_t kept = leaf.pages.size() - count;
  pool.release(std::span(leaf.pages).subspan(kept));
  leaf.pages.resize(kept);
  leaf.tokens.resize(kept * page_tokens);
  pages -= static_cast<std::uint32_t>(count);
}

// Not by recursion: a path is as deep as its conversation is long.
void PrefixTree::State::drop_all_below(PrefixNode& root) {
  std::vector<std::unique_ptr<PrefixNode>> dropped;
  const auto take_children = [&](PrefixNode& node) {
    while (!node.children.empty()) {
      dropped.push_back(std::move(node.children.extract(node.children.begin()).value()));
    }
  };
  take_children(root);
  while (!dropped.empty()) {
    const auto node = std::move(dropped.back());
    dropped.pop_back();
    give_back(*node);
    take_children(*node);
  }
}

void PrefixTree::State::give_back(PrefixNode& node) {
  leaves.erase(&node);
  pages -= static_cast<std::uint32_t>(node.pages.size());
  pool.release(node.pages);
}

PrefixTree::PrefixTree(PagePool& pool, std::uint32_t page_tokens, double prefill_milliseconds)
    : state_(std::make_unique<State>(pool, page_tokens, prefill_milliseconds)) {
  assert(page_tokens > 0);
}

PrefixTree::~PrefixTree() { clear(); }

void PrefixTree::set_prefill_milliseconds(double per_token) { state_->prefill_milliseconds = per_token; }

PrefixTree::Match PrefixTree::match(const PrefixKey& key, std::span<const Token> tokens, Clock::time_point now) {
  const auto root = state_->roots.find(key);
  if (root == state_->roots.end() || tokens.empty()) return {};
  Match match;
  for (PrefixNode* node : state_->path_along(root->second, tokens.first(tokens.size() - 1))) {
    state_->note_use(*node, now);
    match.pages.insert(match.pages.end(), node->pages.begin(), node->pages.end());
  }
  state_->pool.retain(match.pages);
  match.tokens = static_cast<std::uint32_t>(match.pages.size() * state_->page_tokens);
  return match;
}

void PrefixTree::insert(const PrefixKey& key, std::span<const Token> tokens, std::span<const PageId> pages,
                        Clock::time_point now) {
  const std::size_t full = std::min(tokens.size() / state_->page_tokens, pages.size());
  if (key.domain.empty() || full == 0) return;
  tokens = tokens.first(full * state_->page_tokens);
  PrefixNode& root = state_->roots.try_emplace(key, state_->page_tokens).first->second;
  const auto path = state_->path_along(root, tokens);
  std::size_t known = 0;
  for (const PrefixNode* node : path) known += node->pages.size();
  if (known == full) return;
  state_->add_leaf(path.empty() ? root : *path.back(), tokens.subspan(known * state_->page_tokens),
                   pages.subspan(known, full - known), now);
}

std::optional<PrefixTree::Candidate> PrefixTree::cheapest(Clock::time_point now) const {
  const PrefixNode* leaf = state_->cheapest_unused();
  if (leaf == nullptr) return std::nullopt;
  const auto pages = static_cast<std::uint32_t>(leaf->pages.size());
  const double milliseconds = state_->prefill_milliseconds * static_cast<double>(leaf->tokens.size());
  return Candidate{.score = keep_score(leaf->use.rate(now), milliseconds, pages), .pages = pages};
}

std::uint32_t PrefixTree::evict_cheapest(Clock::time_point, std::uint32_t most) {
  PrefixNode* leaf = state_->cheapest_unused();
  if (leaf == nullptr) return 0;
  const auto held = static_cast<std::uint32_t>(leaf->pages.size());
  if (most < held) {
    state_->drop_last(*leaf, most);
    return most;
  }
  state_->drop_leaf(*leaf);
  return held;
}

void PrefixTree::forget(std::string_view computation) {
  std::erase_if(state_->roots, [&](auto& entry) {
    if (entry.first.computation != computation) return false;
    state_->drop_all_below(entry.second);
    return true;
  });
}

void PrefixTree::clear() {
  for (auto& [key, root] : state_->roots) state_->drop_all_below(root);
  state_->roots.clear();
}

std::uint32_t PrefixTree::pages() const { return state_->pages; }

}  // namespace molly::engine
