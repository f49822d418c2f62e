#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/error.h"
#include "training/data/packing.h"
#include "training/graph/base_model.h"
#include "training/loss/optimizer.h"

namespace molly::training {

struct LearnerOptions {
  FactorSettings factors;
  AdamW::Settings optimizer;
  double clip_norm = 1;
  std::uint32_t row_tokens = 1024;
  std::uint32_t workers = 1;  // each computes rows of its own, with one thread
};

// What one step did.
struct StepResult {
  double loss = 0;           // nats for each token that counts, before the step
  double gradient_norm = 0;  // before it was clipped
  std::size_t counted = 0;   // tokens
};

// LoRA factors over a frozen base, and the steps that change them. The same rows in the same order give the same
// factors, bit for bit, as long as the number of workers stays the same. Not for two threads at once.
class Learner {
 public:
  // `base` must outlive this. overloaded: no memory; unavailable: no backend.
  static Result<std::unique_ptr<Learner>> make(const BaseModel& base, const LearnerOptions& options);
  ~Learner();
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;

  // One step of the optimizer by the mean loss over all tokens that count in `rows`, each row_tokens long. Blocks.
  // invalid_request: nothing counts.
  Result<StepResult> step(std::span<const PackedRow* const> rows, double rate);
  // The mean loss alone.
  Result<double> loss(std::span<const PackedRow* const> rows);

  const Arena& factors() const;
  AdamW& optimizer();
  std::uint64_t bytes() const;  // beside the base

 private:
  struct State;
  explicit Learner(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace molly::training
