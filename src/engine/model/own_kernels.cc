#include "engine/model/own_kernels.h"

#include <cmath>

#include "engine/model/graph.h"

namespace molly::engine {
namespace {

ConstRows rows_of(const ggml_tensor* tensor) { return {static_cast<const float*>(tensor->data), tensor->nb[1]}; }
MutableRows mutable_rows_of(ggml_tensor* tensor) { return {static_cast<float*>(tensor->data), tensor->nb[1]}; }
HeadRows head_rows_of(ggml_tensor* tensor) { return {static_cast<float*>(tensor->data), tensor->nb[2], tensor->nb[1]}; }

// src[0]: x. The result is no data, only an order: shrink before expand.
void run_shrink(ggml_tensor* done, int thread, int threads, void* data) {
  const auto& operation = *static_cast<OwnKernels::LoraOperation*>(data);
  lora_shrink(operation.isa, operation.step->lora(operation.linear), rows_of(done->src[0]), operation.step->hidden(),
              thread, threads);
}

// In place on src[0]: y.
void run_expand(ggml_tensor* y, int thread, int threads, void* data) {
  const auto& operation = *static_cast<OwnKernels::LoraOperation*>(data);
  lora_expand(operation.isa, operation.step->lora(operation.linear), operation.step->hidden(), mutable_rows_of(y),
              thread, threads);
}

// src[0]: k as [kv_width, rows], src[1]: v. The result is no data, only an order: store before attend.
void run_store(ggml_tensor* done, int thread, int threads, void* data) {
  const auto& operation = *static_cast<OwnKernels::AttentionOperation*>(data);
  const auto sequences = operation.step->sequences();
  store_rows(operation.isa, operation.pages, operation.pages.key_offset, sequences, rows_of(done->src[0]), thread,
             threads);
  store_rows(operation.isa, operation.pages, operation.pages.value_offset, sequences, rows_of(done->src[1]), thread,
             threads);
}

// src[0]: q [head_dim, n_head, rows].
void run_attend(ggml_tensor* output, int thread, int threads, void* data) {
  const auto& operation = *static_cast<OwnKernels::AttentionOperation*>(data);
  attend(operation.isa, operation.pages, operation.step->sequences(), head_rows_of(output->src[0]), operation.n_head,
         operation.scale, head_rows_of(output), thread, threads);
}

}  // namespace

OwnKernels::OwnKernels(const ModelConfig& config, StepData& step, const PoolLayout& pool, Isa isa) : step_(step) {
  for (std::uint32_t layer = 0; layer < config.n_layer; ++layer) {
    const PagedKv pages{.base = pool.base,
                        .page_stride = pool.page_bytes,
                        .key_offset = pool.key_offset(layer),
                        .value_offset = pool.value_offset(layer),
                        .row_bytes = pool.row_bytes,
                        .page_tokens = pool.page_tokens,
                        .type = pool.type,
                        .n_head_kv = config.n_head_kv,
                        .head_dim = config.head_dim};
    attentions_.push_back({&step, pages, config.n_head, 1 / std::sqrt(static_cast<float>(config.head_dim)), isa});
  }
  for (std::size_t linear = 0; linear < step.linears(); ++linear) loras_.push_back({&step, linear, isa});
}

ggml_tensor* OwnKernels::adapt(ForwardGraph& graph, const Linear& linear, ggml_tensor* x, ggml_tensor* y) {
  LoraOperation* operation = &loras_[step_.linear_number(linear)];
  ggml_tensor* shrunk =
      ggml_custom_4d(graph.context(), GGML_TYPE_F32, 1, 1, 1, 1, &x, 1, run_shrink, GGML_N_TASKS_MAX, operation);
  return ggml_custom_inplace(graph.context(), y, &shrunk, 1, run_expand, GGML_N_TASKS_MAX, operation);
}

// Many rows compute so long with what they read that fetching it ahead does not matter.
const std::vector<MemoryRun>* OwnKernels::read_by_adapters(const ForwardGraph& graph, const Linear& linear) const {
  constexpr std::uint32_t few_rows = 32;
  return graph.rows() > few_rows ? nullptr : &step_.factor_memory(step_.linear_number(linear));
}

ggml_tensor* OwnKernels::attend(ForwardGraph& graph, std::uint32_t layer, ggml_tensor* q, ggml_tensor* k,
                                ggml_tensor* v) {
  const ModelConfig& config = graph.config();
  AttentionOperation* operation = &attentions_[layer];
  ggml_tensor* new_rows[] = {k, v};
  ggml_tensor* stored =
      ggml_custom_4d(graph.context(), GGML_TYPE_F32, 1, 1, 1, 1, new_rows, 2, run_store, GGML_N_TASKS_MAX, operation);
  ggml_tensor* arguments[] = {q, stored};
  ggml_tensor* output = ggml_custom_4d(graph.context(), GGML_TYPE_F32, config.head_dim, config.n_head, graph.rows(), 1,
                                       arguments, 2, run_attend, GGML_N_TASKS_MAX, operation);
  return ggml_reshape_2d(graph.context(), output, config.query_width(), graph.rows());
}

}  // namespace molly::engine
