#pragma once

#include <optional>

#include "engine/model/backend.h"
#include "engine/model/own_kernels.h"

namespace molly::engine {

// What the engine's paged attention is held against: ggml_flash_attn_ext over keys and values that lie as libllama lays
// them, the cells of each sequence one after the other in F16, all sequences in one operation. Adapters as OwnKernels.
//
// The pool's pages are as long as the longest sequence: page i is all of sequence i of every pass. The sequences of a
// pass have equally many rows.
class ContiguousAttention : public GraphOperations {
 public:
  ContiguousAttention(const ModelConfig& config, const Backend& backend, StepData& step, const PoolLayout& pool);

  ggml_tensor* adapt(ForwardGraph& graph, const Linear& linear, ggml_tensor* x, ggml_tensor* y) override;
  ggml_tensor* attend(ForwardGraph& graph, std::uint32_t layer, ggml_tensor* q, ggml_tensor* k,
                      ggml_tensor* v) override;
  // As libllama: the last graph serves the next pass when its shape is the same.
  bool graphs_last() const override { return shape_ && shape_ == shape_of_pass(); }
  std::size_t nodes_for_each_layer() const override { return 96; }
  Result<void> begin(ForwardGraph& graph) override;
  void set_inputs() override;

 private:
  struct Shape {
    std::int64_t sequences = 0;
    std::int64_t rows = 0;   // of each
    std::int64_t cells = 0;  // that are attended to, of each
    bool operator==(const Shape&) const = default;
  };

  std::optional<Shape> shape_of_pass() const;
  ggml_tensor* stored(ForwardGraph& graph, std::size_t offset, ggml_tensor* rows) const;

  const ModelConfig& config_;
  StepData& step_;
  PoolLayout pool_;
  Buffer pool_buffer_;
  OwnKernels adapters_;

  // Of the graph that was begun last.
  std::optional<Shape> shape_;
  ggml_tensor* places_ = nullptr;  // I64 [rows of all]: the cell of each row, counted through the pool
  ggml_tensor* mask_ = nullptr;    // F16 [cells, rows, 1, sequences]
};

}  // namespace molly::engine
