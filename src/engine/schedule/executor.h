#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/error.h"
#include "engine/adapters/image.h"
#include "engine/memory/page_pool.h"
#include "engine/memory/prefix_tree.h"

namespace molly::engine {

// A hot adapter and its weight in a sequence's mixture.
struct AdapterShare {
  const ResidentAdapter* adapter = nullptr;
  float weight = 1;
};

// Which rows of a sequence's part in a step have their logits (or final hidden state) read.
enum class Wanted : std::uint8_t { nothing, last, all };

// One sequence's tokens in one forward pass.
struct StepSequence {
  std::span<const Token> tokens;           // at least one
  std::uint32_t first_position = 0;        // of tokens[0]
  std::span<const PageId> pages;           // hold positions 0 to first_position + tokens.size() - 1
  std::span<const AdapterShare> adapters;  // empty: the base alone
  Wanted wanted = Wanted::last;
};

// Runs forward passes. The scheduler's only view of the model, so that it can be tested with a stub.
class Executor {
 public:
  virtual ~Executor() = default;

  // One forward pass over rows of any mix of sequences and adapters. Outputs are in order of sequences, then tokens.
  // Errors: internal (the backend failed). Blocks for its whole duration.
  virtual Result<void> run(std::span<const StepSequence> sequences) = 0;
  // Of the last run: n_vocab floats. Valid until the next run; may be changed in place (by samplers).
  virtual std::span<float> logits(std::uint32_t output) = 0;
  // Of the last run: n_embd floats, after the final norm.
  virtual std::span<const float> hidden(std::uint32_t output) = 0;

  virtual void copy_page(PageId from, PageId to) = 0;

  virtual std::uint32_t page_tokens() const = 0;
  virtual std::uint32_t vocabulary() const = 0;
  virtual std::uint32_t max_rows() const = 0;  // of one run
};

}  // namespace molly::engine
