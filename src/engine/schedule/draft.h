#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/memory/prefix_tree.h"

// Speculative decoding (Leviathan et al., arXiv 2211.17192): cheap guesses, verified in one pass.
namespace molly::engine {

// Guesses for one sequence. Asked on the engine's thread between steps.
class Drafter {
 public:
  virtual ~Drafter() = default;
  // At most `depth` tokens that may follow `tokens`; fewer or none where it has no idea.
  virtual std::vector<Token> draft(std::span<const Token> tokens, std::uint32_t depth) = 0;
};

// Looks the sequence's last n tokens up in the sequence itself (prompt lookup decoding, Saxena 2023), longest n first.
class NgramDrafter : public Drafter {
 public:
  NgramDrafter(std::uint32_t shortest = 2, std::uint32_t longest = 4) : shortest_(shortest), longest_(longest) {}
  std::vector<Token> draft(std::span<const Token> tokens, std::uint32_t depth) override;

 private:
  std::uint32_t shortest_;
  std::uint32_t longest_;
};

// Chooses how many tokens to draft for each kind of work from what was accepted before, and none where drafting does
// not pay: expected tokens per step over the cost of verifying, (1 - a^(d+1)) / (1 - a) / (1 + c d), theorem 3.8 of the
// paper with c the measured cost of one more row relative to a step (of its sequence's share in one, when there are
// several).
class AcceptanceGovernor {
 public:
  explicit AcceptanceGovernor(std::uint32_t max_depth = 8) : max_depth_(max_depth) {}

  // `kind` is model, adapter and task class. 0: do not draft now. A kind that was turned off is tried again with depth
  // 1 once every `retry_after` calls.
  std::uint32_t depth(const std::string& kind, double cost_per_row);
  // `drafted` without those that were never compared because the sequence ended before.
  void note(const std::string& kind, std::uint32_t drafted, std::uint32_t accepted);
  double acceptance(const std::string& kind) const;

  static constexpr std::uint32_t retry_after = 256;
  static constexpr std::size_t max_kinds = 4096;  // beyond that all is learnt anew

 private:
  struct Record {
    double drafted = 2;  // decayed counts; a prior of one accepted in two
    double accepted = 1;
    std::uint32_t calls_off = 0;
  };
  std::uint32_t max_depth_;
  std::map<std::string, Record> records_;
};

}  // namespace molly::engine
