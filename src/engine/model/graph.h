#pragma once

#include <ggml.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "engine/model/config.h"
#include "engine/model/graph_operations.h"
#include "engine/model/weights.h"

namespace molly::engine {

// The building blocks of one forward pass over `rows` tokens, in the words of the papers.
class ForwardGraph {
 public:
  struct Inputs {
    ggml_tensor* tokens = nullptr;     // I32 [rows]
    ggml_tensor* positions = nullptr;  // I32 [rows]
    ggml_tensor* outputs = nullptr;    // I32 [outputs]: rows that are read; null when all are
  };

  ForwardGraph(const ModelConfig& config, const Weights& weights, GraphOperations& operations, std::uint32_t rows,
               bool with_adapters);

  const ModelConfig& config() const { return config_; }
  const Weights& weights() const { return weights_; }
  std::uint32_t rows() const { return rows_; }
  ggml_context* context() const { return context_.get(); }

  ggml_tensor* embed();
  // RMSNorm (Zhang and Sennrich, arXiv 1910.07467), times `weight`.
  ggml_tensor* norm(ggml_tensor* x, ggml_tensor* weight);
  ggml_tensor* add(ggml_tensor* left, ggml_tensor* right);
  // [n_in, rows] -> [n_out, rows]
  ggml_tensor* multiply(const Matrix& matrix, ggml_tensor* x) { return multiply(matrix, x, nullptr); }
  // The projections that were fused or not, each as a view [columns, rows], in the order of their segments.
  std::vector<ggml_tensor*> project(const std::vector<Linear>& linears, ggml_tensor* x);
  ggml_tensor* project(const Linear& linear, ggml_tensor* x);
  // [heads * head_dim, rows] as [head_dim, heads, rows].
  ggml_tensor* heads(ggml_tensor* x, std::uint32_t count);
  ggml_tensor* rotate(ggml_tensor* heads);
  // Stores k and v in the pages, attends over all positions before and at each row; [n_head * head_dim, rows].
  ggml_tensor* attend(std::uint32_t layer, ggml_tensor* q, ggml_tensor* k, ggml_tensor* v);
  // silu(gate) * up (Shazeer, arXiv 2002.05202).
  ggml_tensor* gated(const std::vector<Linear>& gate_up, ggml_tensor* x);
  // Final norm of the rows that are read, and logits over the vocabulary.
  void finish(ggml_tensor* state, std::uint32_t outputs);

  const Inputs& inputs() const { return inputs_; }
  ggml_tensor* hidden() const { return hidden_; }  // [n_embd, outputs]
  ggml_tensor* logits() const { return logits_; }  // [n_vocab, outputs]
  ggml_cgraph* graph() const { return graph_; }

  // What ggml hands back to the operation of a product.
  struct Product {
    const PackedMatrix* matrix = nullptr;
    const std::vector<MemoryRun>* read_next = nullptr;  // by the adapters; null: nothing
  };

 private:
  ggml_tensor* multiply(const Matrix& matrix, ggml_tensor* x, const std::vector<MemoryRun>* read_next);

  const ModelConfig& config_;
  const Weights& weights_;
  GraphOperations& operations_;
  std::uint32_t rows_;
  bool with_adapters_;
  Context context_;
  ggml_cgraph* graph_ = nullptr;
  Inputs inputs_;
  ggml_tensor* hidden_ = nullptr;
  ggml_tensor* logits_ = nullptr;
  std::deque<Product> products_;  // at addresses that stay
};

}  // namespace molly::engine
