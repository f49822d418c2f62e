#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/memory/prefix_tree.h"

// Speculative decoding (Leviathan et al., arXiv 2211.17192): cheap guesses, verified in one pass.
namespace molly::engine {

class TokenChooser;
using GenerationId = std::uint64_t;

// Where guesses come from.
enum class DraftKind : std::uint8_t {
  ngram,   // the sequence itself
  model,   // a small model with the same vocabulary
  base,    // the base without the request's adapters
  pushed,  // somebody outside, who sends them while the answer is made
};
constexpr std::array draft_kinds{DraftKind::ngram, DraftKind::model, DraftKind::base, DraftKind::pushed};
std::string_view to_string(DraftKind kind);

template <class Value>
struct ForEachDraftKind : std::array<Value, draft_kinds.size()> {
  using std::array<Value, draft_kinds.size()>::operator[];
  Value& operator[](DraftKind kind) { return (*this)[static_cast<std::size_t>(kind)]; }
  const Value& operator[](DraftKind kind) const { return (*this)[static_cast<std::size_t>(kind)]; }
};

struct DraftCounts {
  std::uint64_t drafted = 0;
  std::uint64_t accepted = 0;
};
using DraftTally = ForEachDraftKind<DraftCounts>;
DraftCounts total(const DraftTally& tally);

// One sequence for which guesses are wanted.
struct DraftWish {
  GenerationId sequence = 0;
  std::span<const Token> tokens;  // prompt and answer so far
  std::uint32_t depth = 0;        // guesses wanted, at least one
  const TokenChooser* chooser = nullptr;
  std::string_view channel;  // by which guesses are pushed
};

// Asked on the engine's thread between steps; must not wait for anything outside.
class DraftSource {
 public:
  virtual ~DraftSource() = default;

  // For each wish, in order, tokens that may follow; fewer than wished for, or none, where it has no idea.
  virtual std::vector<std::vector<Token>> draft(std::span<const DraftWish> wishes) = 0;
  // The sequence has ended.
  virtual void forget(GenerationId) {}

  // Milliseconds of drafting one more token, for each of so many sequences that draft together.
  virtual double milliseconds_per_token(std::uint32_t /*sequences*/) const { return 0; }
  // Milliseconds before it can draft for this sequence at all.
  virtual double milliseconds_to_catch_up(const DraftWish&) const { return 0; }
};

}  // namespace molly::engine
