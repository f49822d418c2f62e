#include "training/corpus/bpe.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

#include "training/corpus/pre_tokenizer.h"

namespace molly::training {
namespace {

constexpr double share_scale = 1ULL << 40;

struct Word {
  std::vector<Token> tokens;
  std::uint64_t weight = 0;
};

// Words with their weights, in the order of their bytes.
Result<std::vector<Word>> weigh_words(std::span<const TextShare> shares) {
  std::unordered_map<std::string_view, std::uint64_t> weights;
  for (const TextShare& share : shares) {
    std::size_t bytes = 0;
    for (const std::string_view text : share.texts) bytes += text.size();
    if (bytes == 0) return failure(ErrorCode::invalid_request, "a share of the tokenizer's texts is empty");
    if (!(share.share > 0) || share.share > 1) {
      return failure(ErrorCode::invalid_request, "a share of the tokenizer's texts is not above 0 and at most 1");
    }
    const auto factor = static_cast<std::uint64_t>(std::ceil(share.share * share_scale / static_cast<double>(bytes)));
    for (const std::string_view text : share.texts) {
      PreTokenizer words(text);
      for (auto word = words.next(); !word.empty(); word = words.next()) weights[word] += factor;
    }
  }
  std::vector<std::pair<std::string_view, std::uint64_t>> sorted(weights.begin(), weights.end());
  std::ranges::sort(sorted);
  std::vector<Word> words(sorted.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i].weight = sorted[i].second;
    for (const char c : sorted[i].first) words[i].tokens.push_back(static_cast<unsigned char>(c));
  }
  return words;
}

std::uint64_t key(Merge pair) {
  return std::uint64_t{static_cast<std::uint32_t>(pair.left)} << 32 | static_cast<std::uint32_t>(pair.right);
}

// The pairs of neighbours of all words, and which words have them.
class Pairs {
 public:
  explicit Pairs(std::vector<Word> words) : words_(std::move(words)) {
    for (std::uint32_t i = 0; i < words_.size(); ++i) count(i);
    queue_changed();
  }

  // The pair to merge next, if any is left.
  bool most_frequent(Merge& pair) {
    while (!queue_.empty()) {
      const Candidate top = queue_.top();
      queue_.pop();
      if (top.weight == 0 || weights_[key(top.pair)] != top.weight) continue;
      pair = top.pair;
      return true;
    }
    return false;
  }

  void merge(Merge pair, Token result) {
    const auto words = std::move(words_of_[key(pair)]);
    words_of_.erase(key(pair));
    for (const std::uint32_t word : words) {
      discount(word);
      replace(words_[word].tokens, pair, result);
      count(word);
    }
    queue_changed();
  }

 private:
  struct Candidate {
    std::uint64_t weight = 0;
    Merge pair;
    bool operator<(const Candidate& other) const {
      return weight != other.weight ? weight < other.weight : key(pair) > key(other.pair);
    }
  };

  template <class Visit>
  void each_pair(std::uint32_t word, Visit&& visit) {
    const auto& tokens = words_[word].tokens;
    for (std::size_t i = 1; i < tokens.size(); ++i) visit(Merge{tokens[i - 1], tokens[i]});
  }

  void count(std::uint32_t word) {
    each_pair(word, [&](Merge pair) {
      weights_[key(pair)] += words_[word].weight;
      changed_.push_back(pair);
      auto& words = words_of_[key(pair)];
      if (words.empty() || words.back() != word) words.push_back(word);
    });
  }

  void discount(std::uint32_t word) {
    each_pair(word, [&](Merge pair) {
      weights_[key(pair)] -= words_[word].weight;
      changed_.push_back(pair);
    });
  }

  void queue_changed() {
    std::ranges::sort(changed_, {}, key);
    const auto repeated = std::ranges::unique(changed_);
    changed_.erase(repeated.begin(), repeated.end());
    for (const Merge pair : changed_) queue_.push({weights_[key(pair)], pair});
    changed_.clear();
  }

  static void replace(std::vector<Token>& tokens, Merge pair, Token result) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i, ++kept) {
      const bool here = i + 1 < tokens.size() && tokens[i] == pair.left && tokens[i + 1] == pair.right;
      tokens[kept] = here ? result : tokens[i];
      if (here) ++i;
    }
    tokens.resize(kept);
  }

  std::vector<Word> words_;
  std::unordered_map<std::uint64_t, std::uint64_t> weights_;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> words_of_;  // may name words that lost the pair since
  std::vector<Merge> changed_;
  std::priority_queue<Candidate> queue_;
};

}  // namespace

Result<Tokenizer> train_bpe(std::span<const TextShare> shares, const BpeSettings& settings) {
  const std::size_t fixed = 256 + settings.specials.size();
  if (settings.vocabulary < fixed) {
    return failure(ErrorCode::invalid_request, "the vocabulary is too small for all bytes and special tokens",
                   "vocabulary");
  }
  auto words = weigh_words(shares);
  if (!words) return std::unexpected(words.error());
  Pairs pairs(*std::move(words));
  std::vector<std::string> pieces(256);
  std::unordered_map<std::string, Token> ids;
  for (int byte = 0; byte < 256; ++byte)
    pieces[static_cast<std::size_t>(byte)] = std::string(1, static_cast<char>(byte));
  std::vector<Merge> merges;
  // A pair comes back when its left or right token comes about in a second way.
  std::unordered_map<std::uint64_t, Token> results;
  for (Merge pair; pieces.size() + settings.specials.size() < settings.vocabulary && pairs.most_frequent(pair);) {
    if (const auto known = results.find(key(pair)); known != results.end()) {
      pairs.merge(pair, known->second);
      continue;
    }
    std::string joined = pieces[static_cast<std::size_t>(pair.left)] + pieces[static_cast<std::size_t>(pair.right)];
    const auto [found, is_new] = ids.try_emplace(joined, static_cast<Token>(pieces.size()));
    if (is_new) pieces.push_back(std::move(joined));
    merges.push_back(pair);
    results.emplace(key(pair), found->second);
    pairs.merge(pair, found->second);
  }
  return Tokenizer::make(merges, settings.specials);
}

}  // namespace molly::training
