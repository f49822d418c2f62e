#pragma once

#include <vector>

#include "engine/model/adapter_stacks.h"
#include "engine/model/backend.h"
#include "engine/model/config.h"
#include "engine/model/graph_operations.h"
#include "engine/model/step.h"

namespace molly::engine {

// Adapters and attention with operations that every backend of ggml has: the adapters of a pass stacked and multiplied
// by ggml_mul_mat_id, the pages of each sequence gathered and attended to by ggml_flash_attn_ext. Slower than
// OwnKernels, and what those are held against.
class StockOperations : public GraphOperations {
 public:
  // pool.page_bytes is a multiple of pool.row_bytes. `gathered`: F16 or F32, of the keys and values attended to.
  StockOperations(const ModelConfig& config, const Backend& backend, StepData& step, const PoolLayout& pool,
                  ggml_type gathered);

  ggml_tensor* adapt(ForwardGraph& graph, const Linear& linear, ggml_tensor* x, ggml_tensor* y) override;
  ggml_tensor* attend(ForwardGraph& graph, std::uint32_t layer, ggml_tensor* q, ggml_tensor* k,
                      ggml_tensor* v) override;
  bool graphs_last() const override { return false; }
  std::size_t nodes_for_each_layer() const override;
  Result<void> begin(ForwardGraph& graph) override;
  void set_inputs() override;

 private:
  struct SequenceInputs {
    ggml_tensor* pages = nullptr;  // I32 [pages of the sequence]
    ggml_tensor* mask = nullptr;   // F16 [positions, rows]
  };
  // Of one projection at one place in the rows' mixtures.
  struct ScaleInput {
    ggml_tensor* tensor = nullptr;  // F32 [1, 1, rows]
    std::size_t linear = 0;
    std::size_t segment = 0;
    std::size_t depth = 0;
  };

  void begin_adapters(ForwardGraph& graph);
  ggml_tensor* adapted_segment(ForwardGraph& graph, std::size_t linear, std::size_t segment, std::size_t depth,
                               ggml_tensor* x);
  ggml_tensor* stored(ForwardGraph& graph, std::size_t offset, ggml_tensor* rows) const;
  ggml_tensor* gathered(ForwardGraph& graph, ggml_tensor* pool, std::size_t sequence) const;
  ggml_tensor* attend_sequence(ForwardGraph& graph, std::size_t sequence, ggml_tensor* q, ggml_tensor* keys,
                               ggml_tensor* values) const;
  std::size_t depth() const { return slots_.size(); }
  void set_places() const;
  void set_sequence(std::size_t sequence) const;
  void set_slots(std::size_t depth) const;
  void set_scale(const ScaleInput& scale) const;

  const ModelConfig& config_;
  const Backend& backend_;
  StepData& step_;
  PoolLayout pool_;
  ggml_type gathered_type_;
  Buffer pool_buffer_;
  AdapterStacks stacks_;

  // Of the graph that was begun last.
  ggml_tensor* places_ = nullptr;  // I64 [rows]: where in the pool each row's keys and values go
  std::vector<SequenceInputs> sequences_;
  std::vector<std::vector<const LoraRows*>> mixtures_;  // by row
  std::vector<ggml_tensor*> slots_;                     // by depth in the mixture, I32 [1, rows]
  std::vector<ScaleInput> scales_;
};

}  // namespace molly::engine
