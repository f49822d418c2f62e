#include "engine/model/graph.h"

#include <cmath>

namespace molly::engine {
namespace {

constexpr std::size_t nodes_for_each_layer = 64;
constexpr std::size_t further_nodes = 64;

ConstRows rows_of(const ggml_tensor* tensor) { return {static_cast<const float*>(tensor->data), tensor->nb[1]}; }
MutableRows mutable_rows_of(ggml_tensor* tensor) { return {static_cast<float*>(tensor->data), tensor->nb[1]}; }
HeadRows head_rows_of(ggml_tensor* tensor) { return {static_cast<float*>(tensor->data), tensor->nb[2], tensor->nb[1]}; }

// src[0]: x. The result is no data, only an order: shrink before expand.
void run_shrink(ggml_tensor* done, int thread, int threads, void* data) {
  const auto& operation = *static_cast<LoraOperation*>(data);
  lora_shrink(operation.isa, operation.step->lora(operation.linear), rows_of(done->src[0]), operation.step->hidden(),
              thread, threads);
}

// In place on src[0]: y.
void run_expand(ggml_tensor* y, int thread, int threads, void* data) {
  const auto& operation = *static_cast<LoraOperation*>(data);
  lora_expand(operation.isa, operation.step->lora(operation.linear), operation.step->hidden(), mutable_rows_of(y),
              thread, threads);
}

// src[0]: k as [kv_width, rows], src[1]: v. The result is no data, only an order: store before attend.
void run_store(ggml_tensor* done, int thread, int threads, void* data) {
  const auto& operation = *static_cast<AttentionOperation*>(data);
  const auto sequences = operation.step->sequences();
  store_rows(operation.isa, operation.pages, operation.pages.key_offset, sequences, rows_of(done->src[0]), thread,
             threads);
  store_rows(operation.isa, operation.pages, operation.pages.value_offset, sequences, rows_of(done->src[1]), thread,
             threads);
}

// src[0]: q [head_dim, n_head, rows].
void run_attend(ggml_tensor* output, int thread, int threads, void* data) {
  const auto& operation = *static_cast<AttentionOperation*>(data);
  attend(operation.isa, operation.pages, operation.step->sequences(), head_rows_of(output->src[0]), operation.n_head,
         operation.scale, head_rows_of(output), thread, threads);
}

}  // namespace

ForwardGraph::ForwardGraph(const ModelConfig& config, const Weights& weights, StepData& step, Operations& operations,
                           std::uint32_t rows, bool with_adapters)
    : config_(config),
      weights_(weights),
      step_(step),
      operations_(operations),
      rows_(rows),
      with_adapters_(with_adapters) {
  const std::size_t nodes = nodes_for_each_layer * config.n_layer + further_nodes;
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

ggml_tensor* ForwardGraph::adapted(const Linear& linear, ggml_tensor* x, ggml_tensor* y) {
  LoraOperation* operation = &operations_.loras[step_.linear_number(linear)];
  ggml_tensor* shrunk =
      ggml_custom_4d(context_.get(), GGML_TYPE_F32, 1, 1, 1, 1, &x, 1, run_shrink, GGML_N_TASKS_MAX, operation);
  return ggml_custom_inplace(context_.get(), y, &shrunk, 1, run_expand, GGML_N_TASKS_MAX, operation);
}

ggml_tensor* ForwardGraph::project(const Linear& linear, ggml_tensor* x) {
  ggml_tensor* y = ggml_mul_mat(context_.get(), linear.weight, x);
  if (with_adapters_) y = adapted(linear, x, y);
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
  AttentionOperation* operation = &operations_.attentions[layer];
  ggml_tensor* new_rows[] = {ggml_reshape_2d(context_.get(), k, config_.kv_width(), rows_), v};
  ggml_tensor* stored =
      ggml_custom_4d(context_.get(), GGML_TYPE_F32, 1, 1, 1, 1, new_rows, 2, run_store, GGML_N_TASKS_MAX, operation);
  ggml_tensor* arguments[] = {q, stored};
  ggml_tensor* output = ggml_custom_4d(context_.get(), GGML_TYPE_F32, config_.head_dim, config_.n_head, rows_, 1,
                                       arguments, 2, run_attend, GGML_N_TASKS_MAX, operation);
  return ggml_reshape_2d(context_.get(), output, config_.query_width(), rows_);
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
  logits_ = ggml_mul_mat(context_.get(), weights_.output, hidden_);
  ggml_set_output(logits_);
  ggml_build_forward_expand(graph_, logits_);
}

}  // namespace molly::engine
