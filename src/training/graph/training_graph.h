#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/error.h"
#include "training/graph/decoder.h"
#include "training/graph/device.h"
#include "training/graph/rewrite.h"

namespace molly::training {

// Tokens of one batch, row after row: each of shape.tokens() numbers. A token sees those before it in its row that
// carry its segment number.
struct Batch {
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> positions;
  std::vector<std::int32_t> segments;
};

// What the losses see of a forward pass, and what they answer: d loss / d state. All [tokens][n_embd].
struct States {
  std::span<const float> hidden;
  std::span<float> hidden_gradient;
  // Those of GraphOptions::hinted_layers, in that order.
  std::vector<std::span<const float>> hints;
  std::vector<std::span<float>> hint_gradients;
};

struct GraphOptions {
  BatchShape shape;
  Rewrite rewrite = Rewrite::products;
  std::vector<std::uint32_t> hinted_layers;  // whose outputs have a loss of their own
};

// Forward and backward pass over batches of one shape, computed by one worker. The loss itself is not part of the
// graph: it is asked for the gradient of the hidden states in the middle of the run, so that it can go through a large
// vocabulary in pieces.
class TrainingGraph {
 public:
  // Fills the gradients in `states`, which are zero at the call.
  using Loss = std::function<void(const States& states)>;

  // Parameters are the decoder's tensors with ggml's flag for them; `gradients` are tensors of the same shapes, into
  // which run() adds. All must outlive the graph. No parameters: forward only. overloaded: no memory.
  static Result<std::unique_ptr<TrainingGraph>> build(const Device& device, const Decoder& decoder,
                                                      const GraphOptions& options,
                                                      std::span<ggml_tensor* const> parameters,
                                                      std::span<ggml_tensor* const> gradients);
  ~TrainingGraph();
  TrainingGraph(const TrainingGraph&) = delete;
  TrainingGraph& operator=(const TrainingGraph&) = delete;

  Result<void> run(const Batch& batch, const Loss& loss);
  const BatchShape& shape() const;
  std::uint64_t bytes() const;  // of activations and gradients on the way
  // Counts of operations by name, for tests of the rewrites.
  int count(ggml_op op) const;

 private:
  struct State;
  explicit TrainingGraph(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace molly::training
