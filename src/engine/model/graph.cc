#include "engine/model/graph.h"

namespace molly::engine {
namespace {

constexpr std::size_t further_nodes = 64;

// src[0]: x [n_in, rows].
void run_quantize_activations(ggml_tensor* activations, int thread, int threads, void* data) {
  const ggml_tensor* x = activations->src[0];
  quantize_activations(*static_cast<ForwardGraph::Product*>(data)->matrix,
                       {static_cast<const float*>(x->data), x->nb[1]}, static_cast<std::uint32_t>(x->ne[1]),
                       static_cast<std::byte*>(activations->data), thread, threads);
}

// src[0]: activations.
void run_multiply(ggml_tensor* y, int thread, int threads, void* data) {
  const auto& product = *static_cast<ForwardGraph::Product*>(data);
  const std::span<const MemoryRun> read_next =
      product.read_next == nullptr ? std::span<const MemoryRun>{} : *product.read_next;
  multiply_packed(*product.matrix, static_cast<const std::byte*>(y->src[0]->data), static_cast<std::uint32_t>(y->ne[1]),
                  {static_cast<float*>(y->data), y->nb[1]}, thread, threads, read_next);
}

}  // namespace

ForwardGraph::ForwardGraph(const ModelConfig& config, const Weights& weights, GraphOperations& operations,
                           std::uint32_t rows, bool with_adapters)
    : config_(config), weights_(weights), operations_(operations), rows_(rows), with_adapters_(with_adapters) {
  const std::size_t nodes = operations.nodes_for_each_layer() * config.n_layer + further_nodes;
  context_.reset(ggml_init({.mem_size = ggml_tensor_overhead() * nodes + ggml_graph_overhead_custom(nodes, false),
                            .mem_buffer = nullptr,
                            .no_alloc = true}));
  graph_ = ggml_new_graph_custom(context_.get(), nodes, false);
  inputs_.tokens = ggml_new_tensor_1d(context_.get(), GGML_TYPE_I32, rows);
  inputs_.positions = ggml_new_tensor_1d(context_.get(), GGML_TYPE_I32, rows);
  ggml_set_input(inputs_.tokens);
  ggml_set_input(inputs_.positions);
}

ggml_tensor* ForwardGraph::embed() { return ggml_get_rows(context_.get(), weights_.token_embd, inputs_.tokens); }

ggml_tensor* ForwardGraph::norm(ggml_tensor* x, ggml_tensor* weight) {
  return ggml_mul(context_.get(), ggml_rms_norm(context_.get(), x, config_.norm_epsilon), weight);
}

ggml_tensor* ForwardGraph::add(ggml_tensor* left, ggml_tensor* right) { return ggml_add(context_.get(), left, right); }

ggml_tensor* ForwardGraph::multiply(const Matrix& matrix, ggml_tensor* x, const std::vector<MemoryRun>* read_next) {
  const PackedMatrix* packed = matrix.packed;
  if (packed == nullptr) return ggml_mul_mat(context_.get(), matrix.tensor, x);
  Product* product = &products_.emplace_back(packed, read_next);
  const auto rows = static_cast<std::uint32_t>(x->ne[1]);
  const auto bytes = static_cast<std::int64_t>(activation_bytes(packed->type, packed->n_in, rows));
  ggml_tensor* activations = ggml_custom_4d(context_.get(), GGML_TYPE_I8, bytes, 1, 1, 1, &x, 1,
                                            run_quantize_activations, GGML_N_TASKS_MAX, product);
  return ggml_custom_4d(context_.get(), GGML_TYPE_F32, packed->n_out, x->ne[1], 1, 1, &activations, 1, run_multiply,
                        GGML_N_TASKS_MAX, product);
}

ggml_tensor* ForwardGraph::project(const Linear& linear, ggml_tensor* x) {
  ggml_tensor* y = multiply(linear.weight, x, with_adapters_ ? operations_.read_by_adapters(*this, linear) : nullptr);
  if (with_adapters_) y = operations_.adapt(*this, linear, x, y);
  return linear.bias == nullptr ? y : ggml_add(context_.get(), y, linear.bias);
}

std::vector<ggml_tensor*> ForwardGraph::project(const std::vector<Linear>& linears, ggml_tensor* x) {
  std::vector<ggml_tensor*> out;
  for (const Linear& linear : linears) {
    ggml_tensor* y = project(linear, x);
    for (const Linear::Segment& segment : linear.segments) {
      out.push_back(linear.segments.size() == 1 ? y
                                                : ggml_view_2d(context_.get(), y, segment.columns, rows_, y->nb[1],
                                                               segment.first * sizeof(float)));
    }
  }
  return out;
}

ggml_tensor* ForwardGraph::heads(ggml_tensor* x, std::uint32_t count) {
  return ggml_view_3d(context_.get(), x, config_.head_dim, count, rows_, config_.head_dim * sizeof(float), x->nb[1], 0);
}

ggml_tensor* ForwardGraph::rotate(ggml_tensor* heads) {
  const int mode = config_.rope_pairs == RopePairs::halves ? GGML_ROPE_TYPE_NEOX : GGML_ROPE_TYPE_NORMAL;
  constexpr float no_extrapolation = 0;
  constexpr float attention_factor = 1;
  constexpr float beta_fast = 32;
  constexpr float beta_slow = 1;
  return ggml_rope_ext(context_.get(), heads, inputs_.positions, weights_.rope_factors,
                       static_cast<int>(config_.rope_dims), mode, static_cast<int>(config_.n_context),
                       config_.rope_base, config_.rope_frequency_scale, no_extrapolation, attention_factor, beta_fast,
                       beta_slow);
}

ggml_tensor* ForwardGraph::attend(std::uint32_t layer, ggml_tensor* q, ggml_tensor* k, ggml_tensor* v) {
  return operations_.attend(*this, layer, q, ggml_reshape_2d(context_.get(), k, config_.kv_width(), rows_), v);
}

ggml_tensor* ForwardGraph::gated(const std::vector<Linear>& gate_up, ggml_tensor* x) {
  if (gate_up.size() == 1) return ggml_swiglu(context_.get(), project(gate_up.front(), x));
  const std::vector<ggml_tensor*> parts = project(gate_up, x);
  return ggml_swiglu_split(context_.get(), parts[0], parts[1]);
}

void ForwardGraph::finish(ggml_tensor* state, std::uint32_t outputs) {
  if (outputs != rows_) {
    inputs_.outputs = ggml_new_tensor_1d(context_.get(), GGML_TYPE_I32, outputs);
    ggml_set_input(inputs_.outputs);
    state = ggml_get_rows(context_.get(), state, inputs_.outputs);
  }
  hidden_ = norm(state, weights_.output_norm);
  ggml_set_output(hidden_);
  logits_ = multiply(weights_.output, hidden_);
  ggml_set_output(logits_);
  ggml_build_forward_expand(graph_, logits_);
}

}  // namespace molly::engine
