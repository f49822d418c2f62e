#pragma once

#include <ggml.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace molly::training {

// From hidden states to logits, a few rows at a time, and back: a vocabulary of 152,000 tokens costs memory for the
// rows in hand, not for the batch, and rows that do not count cost nothing.
class OutputHead {
 public:
  // `weight`: [n_embd, n_vocab] of any type that ggml can read; must outlive this. `gradient`: of the same shape in
  // F32, into which backward() adds d loss / d weight; null where the head is frozen.
  explicit OutputHead(ggml_tensor* weight, ggml_tensor* gradient = nullptr);

  // The loss of row `index` of those asked for; replaces its logits [n_vocab] by d loss / d logits.
  using RowLoss = std::function<double(std::size_t index, std::span<float> logits)>;
  // Only reads the logits.
  using RowReader = std::function<void(std::size_t index, std::span<const float> logits)>;

  // Sum of the losses of `rows` of `hidden` [tokens][n_embd]; adds d loss / d hidden to `hidden_gradient`.
  double backward(std::span<const float> hidden, std::span<const std::uint32_t> rows, std::span<float> hidden_gradient,
                  const RowLoss& loss);
  void forward(std::span<const float> hidden, std::span<const std::uint32_t> rows, const RowReader& read);

  std::uint64_t bytes() const;  // of its buffers

 private:
  void gather(std::span<const float> hidden, std::span<const std::uint32_t> rows);
  void multiply(std::size_t rows);
  void multiply_back(std::size_t rows);
  void add_weight_gradient(std::size_t rows);
  // Rows [first, first + count) of the weight in single precision.
  const float* block(std::size_t first, std::size_t count);

  ggml_tensor* weight_;
  ggml_tensor* gradient_;
  std::size_t width_;
  std::size_t vocabulary_;
  std::size_t chunk_rows_;
  std::size_t block_rows_;
  std::vector<float> states_;     // [chunk_rows][width]
  std::vector<float> gradients_;  // [chunk_rows][width]
  std::vector<float> logits_;     // [chunk_rows][vocabulary]
  std::vector<float> block_;      // [block_rows][width], empty for a weight in F32
};

// In place: logits become probabilities. Returns the logarithm of their sum of exponentials.
double soft_max(std::span<float> logits);

// Cross-entropy of one token, weight * -log p(token), and its gradient in place of the logits. A negative weight is
// what preferences give to what they reject.
double cross_entropy(std::span<float> logits, std::int32_t token, double weight);

}  // namespace molly::training
