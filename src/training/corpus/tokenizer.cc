#include "training/corpus/tokenizer.h"

#include <algorithm>
#include <format>
#include <queue>

#include "training/corpus/pre_tokenizer.h"

namespace molly::training {
namespace {

std::uint64_t key(Token left, Token right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
}

}  // namespace

// A merge that is possible at a place, as long as both its tokens still stand there.
struct Tokenizer::Pending {
  std::uint32_t rank;
  std::uint32_t left;
  std::uint32_t right;
  Token left_token;
  Token right_token;
  Token result;
  // The queue's top is the lowest rank, then the leftmost.
  bool operator<(const Pending& other) const { return rank != other.rank ? rank > other.rank : left > other.left; }
};

// One word while it is merged: a chain of tokens. Reused from word to word.
class Tokenizer::Word {
 public:
  explicit Word(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  void encode(std::string_view word, std::vector<Token>& tokens) {
    chain_.clear();
    for (const char c : word) {
      const auto at = static_cast<std::uint32_t>(chain_.size());
      chain_.push_back({static_cast<unsigned char>(c), at - 1, at + 1});
    }
    for (std::uint32_t i = 1; i < chain_.size(); ++i) consider(i - 1, i);
    while (!pending_.empty()) {
      const Pending next = pending_.top();
      pending_.pop();
      if (chain_[next.left].token == next.left_token && chain_[next.right].token == next.right_token) apply(next);
    }
    for (std::uint32_t i = 0; i < chain_.size(); i = chain_[i].next) tokens.push_back(chain_[i].token);
  }

 private:
  struct Link {
    Token token;
    std::uint32_t previous;
    std::uint32_t next;
  };
  static constexpr Token gone = -1;

  void consider(std::uint32_t left, std::uint32_t right) {
    const Step* step = tokenizer_.step(chain_[left].token, chain_[right].token);
    if (step == nullptr) return;
    pending_.push({step->rank, left, right, chain_[left].token, chain_[right].token, step->result});
  }

  void apply(const Pending& merge) {
    Link& left = chain_[merge.left];
    Link& right = chain_[merge.right];
    left.token = merge.result;
    left.next = right.next;
    right.token = gone;
    if (left.next < chain_.size()) {
      chain_[left.next].previous = merge.left;
      consider(merge.left, left.next);
    }
    if (left.previous < chain_.size()) consider(left.previous, merge.left);
  }

  const Tokenizer& tokenizer_;
  std::vector<Link> chain_;
  std::priority_queue<Pending> pending_;
};

Result<Tokenizer> Tokenizer::make(std::span<const Merge> merges, std::span<const std::string> specials) {
  Tokenizer made;
  std::unordered_map<std::string, Token> ids;
  for (int byte = 0; byte < 256; ++byte) {
    made.pieces_.emplace_back(1, static_cast<char>(byte));
    ids.emplace(made.pieces_.back(), byte);
  }
  for (const Merge merge : merges) {
    if (auto added = made.add_merge(merge, ids); !added) return std::unexpected(added.error());
  }
  for (const std::string& name : specials) {
    if (auto added = made.add_special(name); !added) return std::unexpected(added.error());
  }
  return made;
}

Result<void> Tokenizer::add_merge(Merge merge, std::unordered_map<std::string, Token>& ids) {
  const auto refuse = [&](std::string_view what) {
    return failure(ErrorCode::invalid_request, std::format("merge {} {}", merges_.size(), what), "merges");
  };
  const auto known = [&](Token token) { return token >= 0 && static_cast<std::size_t>(token) < pieces_.size(); };
  if (!known(merge.left) || !known(merge.right)) return refuse("joins a token that does not exist yet");
  std::string joined = piece(merge.left) + piece(merge.right);
  const auto [found, is_new] = ids.try_emplace(joined, static_cast<Token>(pieces_.size()));
  const Step step{.rank = static_cast<std::uint32_t>(merges_.size()), .result = found->second};
  if (!steps_.try_emplace(key(merge.left, merge.right), step).second) return refuse("stands there twice");
  if (is_new) pieces_.push_back(std::move(joined));
  merges_.push_back(merge);
  return {};
}

Result<void> Tokenizer::add_special(const std::string& name) {
  if (name.empty() || special(name) >= 0) {
    return failure(ErrorCode::invalid_request, "a special token is empty or stands there twice", "specials");
  }
  specials_.push_back(name);
  if (!special_initials_.contains(name.front())) special_initials_ += name.front();
  pieces_.push_back(name);
  return {};
}

const Tokenizer::Step* Tokenizer::step(Token left, Token right) const {
  const auto found = steps_.find(key(left, right));
  return found == steps_.end() ? nullptr : &found->second;
}

std::vector<Token> Tokenizer::encode(std::string_view text, Specials specials) const {
  std::vector<Token> tokens;
  std::size_t at = 0;
  while (specials == Specials::parsed) {
    const auto [begin, token] = find_special(text, at);
    if (token < 0) break;
    encode_text(text.substr(at, begin - at), tokens);
    tokens.push_back(token);
    at = begin + piece(token).size();
  }
  encode_text(text.substr(at), tokens);
  return tokens;
}

void Tokenizer::encode_text(std::string_view text, std::vector<Token>& tokens) const {
  struct Place {
    std::size_t begin;
    std::size_t count;
  };
  std::unordered_map<std::string_view, Place> seen;
  PreTokenizer words(text);
  Word merging(*this);
  for (auto word = words.next(); !word.empty(); word = words.next()) {
    const auto [place, is_new] = seen.try_emplace(word, Place{tokens.size(), 0});
    if (is_new) {
      merging.encode(word, tokens);
      place->second.count = tokens.size() - place->second.begin;
      continue;
    }
    for (std::size_t i = 0; i < place->second.count; ++i) tokens.push_back(tokens[place->second.begin + i]);
  }
}

std::pair<std::size_t, Token> Tokenizer::find_special(std::string_view text, std::size_t from) const {
  for (auto at = text.find_first_of(special_initials_, from); at != std::string_view::npos;
       at = text.find_first_of(special_initials_, at + 1)) {
    std::pair<std::size_t, Token> best{at, -1};
    std::size_t longest = 0;
    for (std::size_t i = 0; i < specials_.size(); ++i) {
      if (specials_[i].size() <= longest || !text.substr(at).starts_with(specials_[i])) continue;
      best.second = static_cast<Token>(special_begin() + i);
      longest = specials_[i].size();
    }
    if (best.second >= 0) return best;
  }
  return {std::string_view::npos, -1};
}

std::string Tokenizer::decode(std::span<const Token> tokens) const {
  std::string text;
  for (const Token token : tokens) {
    if (token >= 0 && static_cast<std::size_t>(token) < special_begin()) text += piece(token);
  }
  return text;
}

Token Tokenizer::special(std::string_view name) const {
  const auto found = std::ranges::find(specials_, name);
  return found == specials_.end() ? -1 : static_cast<Token>(special_begin() + (found - specials_.begin()));
}

std::vector<std::string> default_specials() {
  std::vector<std::string> names = {std::string(end_of_document), std::string(begin_of_turn), std::string(end_of_turn)};
  while (names.size() < 16) names.push_back(std::format("<|reserved_{}|>", names.size()));
  return names;
}

}  // namespace molly::training
