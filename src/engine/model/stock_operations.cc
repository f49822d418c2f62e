#include "engine/model/stock_operations.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "engine/kernels/half.h"
#include "engine/model/graph.h"

namespace molly::engine {
namespace {

ggml_tensor* new_input(ForwardGraph& graph, ggml_type type, std::int64_t ne0, std::int64_t ne1 = 1,
                       std::int64_t ne2 = 1) {
  ggml_tensor* input = ggml_new_tensor_3d(graph.context(), type, ne0, ne1, ne2);
  ggml_set_input(input);
  return input;
}

template <class Number>
void set(ggml_tensor* tensor, const std::vector<Number>& values) {
  // What no operation reads has no memory.
  if (tensor->data != nullptr) ggml_backend_tensor_set(tensor, values.data(), 0, values.size() * sizeof(Number));
}

std::uint32_t positions_of(const SequenceRows& sequence) { return sequence.first_position + sequence.rows; }

std::uint32_t row_count(std::span<const SequenceRows> sequences) {
  return sequences.empty() ? 0 : sequences.back().first_row + sequences.back().rows;
}

}  // namespace

StockOperations::StockOperations(const ModelConfig& config, const Backend& backend, StepData& step,
                                 const PoolLayout& pool, ggml_type gathered)
    : config_(config),
      backend_(backend),
      step_(step),
      pool_(pool),
      gathered_type_(gathered),
      pool_buffer_(backend.wrap(pool.base, pool.bytes())) {
  assert(pool.page_bytes % pool.row_bytes == 0);
}

std::size_t StockOperations::nodes_for_each_layer() const {
  constexpr std::size_t of_the_base = 64;
  constexpr std::size_t for_each_sequence = 24;
  constexpr std::size_t for_each_depth = 12 * projection_count;
  return of_the_base + for_each_sequence * step_.sequences().size() + for_each_depth * step_.mixture_depth();
}

Result<void> StockOperations::begin(ForwardGraph& graph) {
  const auto sequences = step_.sequences();
  places_ = new_input(graph, GGML_TYPE_I64, row_count(sequences));
  sequences_.clear();
  for (const SequenceRows& sequence : sequences) {
    const std::uint32_t positions = positions_of(sequence);
    const std::uint32_t pages = (positions + pool_.page_tokens - 1) / pool_.page_tokens;
    sequences_.push_back({.pages = new_input(graph, GGML_TYPE_I32, pages),
                          .mask = new_input(graph, GGML_TYPE_F16, positions, sequence.rows)});
  }
  slots_.clear();
  scales_.clear();
  if (!step_.has_adapters()) return {};
  begin_adapters(graph);
  return stacks_.fill(step_, backend_);
}

void StockOperations::begin_adapters(ForwardGraph& graph) {
  mixtures_.assign(graph.rows(), {});
  for (const LoraRows& group : step_.adapter_rows()) {
    for (std::uint32_t row = 0; row < group.rows; ++row) mixtures_[group.first_row + row].push_back(&group);
  }
  for (std::size_t depth = 0; depth < step_.mixture_depth(); ++depth) {
    slots_.push_back(new_input(graph, GGML_TYPE_I32, 1, graph.rows()));
  }
}

ggml_tensor* StockOperations::adapted_segment(ForwardGraph& graph, std::size_t linear, std::size_t segment,
                                              std::size_t depth, ggml_tensor* x) {
  ggml_context* context = graph.context();
  const AdapterStacks::Stack& stack = stacks_.at(linear, segment);
  ggml_tensor* rows = ggml_reshape_3d(context, x, x->ne[0], 1, x->ne[1]);
  ggml_tensor* hidden = ggml_mul_mat_id(context, stack.a, rows, slots_[depth]);
  ggml_tensor* out = ggml_mul_mat_id(context, stack.b, hidden, slots_[depth]);
  ggml_tensor* scale = new_input(graph, GGML_TYPE_F32, 1, 1, graph.rows());
  scales_.push_back({.tensor = scale, .linear = linear, .segment = segment, .depth = depth});
  return ggml_reshape_2d(context, ggml_mul(context, out, scale), out->ne[0], graph.rows());
}

ggml_tensor* StockOperations::adapt(ForwardGraph& graph, const Linear& linear, ggml_tensor* x, ggml_tensor* y) {
  const std::size_t number = step_.linear_number(linear);
  for (std::size_t at = 0; at < depth(); ++at) {
    ggml_tensor* all = nullptr;
    for (std::size_t segment = 0; segment < linear.segments.size(); ++segment) {
      ggml_tensor* part = adapted_segment(graph, number, segment, at, x);
      all = all == nullptr ? part : ggml_concat(graph.context(), all, part, 0);
    }
    y = ggml_add(graph.context(), y, all);
  }
  return y;
}

// The whole pool after the rows were written: [kv_width, rows of the pool] from `offset` on.
ggml_tensor* StockOperations::stored(ForwardGraph& graph, std::size_t offset, ggml_tensor* rows) const {
  const std::size_t rows_before_last_page = (pool_.pages - 1) * (pool_.page_bytes / pool_.row_bytes);
  const ggml_type type = pool_.type == KvType::q8_0 ? GGML_TYPE_Q8_0 : GGML_TYPE_F16;
  ggml_tensor* pool = ggml_new_tensor_2d(graph.context(), type, config_.kv_width(),
                                         static_cast<std::int64_t>(rows_before_last_page + pool_.page_tokens));
  ggml_backend_tensor_alloc(pool_buffer_.get(), pool, pool_.base + offset);
  return ggml_set_rows(graph.context(), pool, rows, places_);
}

// [head_dim, positions, n_head_kv]
ggml_tensor* StockOperations::gathered(ForwardGraph& graph, ggml_tensor* pool, std::size_t sequence) const {
  ggml_context* context = graph.context();
  const std::int64_t width = config_.kv_width();
  const std::int64_t positions = sequences_[sequence].mask->ne[0];
  const std::int64_t page_count = sequences_[sequence].pages->ne[0];
  ggml_tensor* pages = ggml_view_2d(context, pool, width * pool_.page_tokens, pool_.pages, pool_.page_bytes, 0);
  ggml_tensor* own = ggml_get_rows(context, pages, sequences_[sequence].pages);
  ggml_tensor* rows = ggml_reshape_2d(context, own, width, page_count * pool_.page_tokens);
  ggml_tensor* used = ggml_view_2d(context, rows, width, positions, rows->nb[1], 0);
  if (gathered_type_ != GGML_TYPE_F32) used = ggml_cast(context, used, gathered_type_);
  ggml_tensor* heads = ggml_reshape_3d(context, used, config_.head_dim, config_.n_head_kv, positions);
  return ggml_permute(context, heads, 0, 2, 1, 3);
}

ggml_tensor* StockOperations::attend_sequence(ForwardGraph& graph, std::size_t sequence, ggml_tensor* q,
                                              ggml_tensor* keys, ggml_tensor* values) const {
  ggml_context* context = graph.context();
  const SequenceRows& rows = step_.sequences()[sequence];
  ggml_tensor* own = ggml_view_3d(context, q, config_.head_dim, config_.n_head, rows.rows, q->nb[1], q->nb[2],
                                  rows.first_row * q->nb[2]);
  ggml_tensor* out =
      ggml_flash_attn_ext(context, ggml_permute(context, own, 0, 2, 1, 3), gathered(graph, keys, sequence),
                          gathered(graph, values, sequence), sequences_[sequence].mask,
                          1 / std::sqrt(static_cast<float>(config_.head_dim)), /*max_bias=*/0, /*logit_softcap=*/0);
  ggml_prec_set_acc(out, GGML_PREC_F32);
  return ggml_reshape_2d(context, out, config_.query_width(), rows.rows);
}

ggml_tensor* StockOperations::attend(ForwardGraph& graph, std::uint32_t layer, ggml_tensor* q, ggml_tensor* k,
                                     ggml_tensor* v) {
  ggml_tensor* keys = stored(graph, pool_.key_offset(layer), k);
  ggml_tensor* values = stored(graph, pool_.value_offset(layer), v);
  ggml_tensor* all = nullptr;
  for (std::size_t sequence = 0; sequence < sequences_.size(); ++sequence) {
    ggml_tensor* part = attend_sequence(graph, sequence, q, keys, values);
    all = all == nullptr ? part : ggml_concat(graph.context(), all, part, 1);
  }
  return all;
}

void StockOperations::set_places() const {
  const std::size_t rows_of_page = pool_.page_bytes / pool_.row_bytes;
  std::vector<std::int64_t> places;
  places.reserve(row_count(step_.sequences()));
  for (const SequenceRows& sequence : step_.sequences()) {
    for (std::uint32_t row = 0; row < sequence.rows; ++row) {
      const std::uint32_t position = sequence.first_position + row;
      const std::size_t page = sequence.pages[position / pool_.page_tokens];
      places.push_back(static_cast<std::int64_t>(page * rows_of_page + position % pool_.page_tokens));
    }
  }
  set(places_, places);
}

void StockOperations::set_sequence(std::size_t sequence) const {
  const SequenceRows& rows = step_.sequences()[sequence];
  const SequenceInputs& inputs = sequences_[sequence];
  const auto pages = rows.pages.first(static_cast<std::size_t>(inputs.pages->ne[0]));
  set(inputs.pages, std::vector<std::int32_t>(pages.begin(), pages.end()));
  const std::uint32_t positions = positions_of(rows);
  std::vector<std::uint16_t> mask(std::size_t{positions} * rows.rows, float_to_half(-INFINITY));
  for (std::uint32_t row = 0; row < rows.rows; ++row) {
    std::fill_n(&mask[std::size_t{row} * positions], rows.first_position + row + 1, float_to_half(0));
  }
  set(inputs.mask, mask);
}

void StockOperations::set_slots(std::size_t depth) const {
  std::vector<std::int32_t> slots;
  slots.reserve(mixtures_.size());
  for (const auto& mixture : mixtures_) {
    slots.push_back(depth < mixture.size() ? static_cast<std::int32_t>(mixture[depth]->adapter) : stacks_.empty_slot());
  }
  set(slots_[depth], slots);
}

void StockOperations::set_scale(const ScaleInput& scale) const {
  const LoraLinear linear = step_.lora(scale.linear);
  std::vector<float> scales;
  scales.reserve(mixtures_.size());
  for (const auto& mixture : mixtures_) {
    if (scale.depth >= mixture.size()) {
      scales.push_back(0);
      continue;
    }
    const LoraRows& rows = *mixture[scale.depth];
    scales.push_back(rows.weight * linear.factors[rows.adapter * linear.segments.size() + scale.segment].scale);
  }
  set(scale.tensor, scales);
}

void StockOperations::set_inputs() {
  set_places();
  for (std::size_t sequence = 0; sequence < sequences_.size(); ++sequence) set_sequence(sequence);
  for (std::size_t at = 0; at < depth(); ++at) set_slots(at);
  for (const ScaleInput& scale : scales_) set_scale(scale);
}

}  // namespace molly::engine
