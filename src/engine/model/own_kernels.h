#pragma once

#include <vector>

#include "engine/kernels/isa.h"
#include "engine/model/config.h"
#include "engine/model/graph_operations.h"
#include "engine/model/step.h"

namespace molly::engine {

// Adapters and attention by our own kernels, as custom operations of ggml's CPU backend.
class OwnKernels : public GraphOperations {
 public:
  OwnKernels(const ModelConfig& config, StepData& step, const PoolLayout& pool, Isa isa);

  ggml_tensor* adapt(ForwardGraph& graph, const Linear& linear, ggml_tensor* x, ggml_tensor* y) override;
  const std::vector<MemoryRun>* read_by_adapters(const ForwardGraph& graph, const Linear& linear) const override;
  ggml_tensor* attend(ForwardGraph& graph, std::uint32_t layer, ggml_tensor* q, ggml_tensor* k,
                      ggml_tensor* v) override;
  bool graphs_last() const override { return true; }
  std::size_t nodes_for_each_layer() const override { return 96; }

  // What ggml hands back to a custom operation.
  struct LoraOperation {
    StepData* step = nullptr;
    std::size_t linear = 0;
    Isa isa = Isa::scalar;
  };
  struct AttentionOperation {
    StepData* step = nullptr;
    PagedKv pages;  // of one layer
    std::uint32_t n_head = 0;
    float scale = 1;
    Isa isa = Isa::scalar;
  };

 private:
  StepData& step_;
  std::vector<LoraOperation> loras_;            // by StepData::linear_number
  std::vector<AttentionOperation> attentions_;  // by layer
};

}  // namespace molly::engine
