#include "contiguous_attention.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

#include "engine/kernels/half.h"
#include "engine/model/graph.h"

namespace molly::engine {
namespace {

// libllama attends to a multiple of so many cells, so that graphs serve longer.
constexpr std::uint32_t cell_padding = 256;

template <class Number>
void set(ggml_tensor* tensor, const std::vector<Number>& values) {
  ggml_backend_tensor_set(tensor, values.data(), 0, values.size() * sizeof(Number));
}

}  // namespace

ContiguousAttention::ContiguousAttention(const ModelConfig& config, const Backend& backend, StepData& step,
                                         const PoolLayout& pool)
    : config_(config),
      step_(step),
      pool_(pool),
      pool_buffer_(backend.wrap(pool.base, pool.bytes())),
      adapters_(config, step, pool, best_isa()) {
  assert(pool.page_bytes % pool.row_bytes == 0 && pool.type == KvType::f16);
}

std::optional<ContiguousAttention::Shape> ContiguousAttention::shape_of_pass() const {
  const auto sequences = step_.sequences();
  if (sequences.empty()) return std::nullopt;
  std::uint32_t longest = 0;
  for (const SequenceRows& sequence : sequences) {
    assert(sequence.rows == sequences.front().rows);
    longest = std::max(longest, sequence.first_position + sequence.rows);
  }
  const std::uint32_t padded = (longest + cell_padding - 1) / cell_padding * cell_padding;
  return Shape{static_cast<std::int64_t>(sequences.size()), sequences.front().rows,
               std::min(padded, pool_.page_tokens)};
}

Result<void> ContiguousAttention::begin(ForwardGraph& graph) {
  shape_ = shape_of_pass();
  places_ = ggml_new_tensor_1d(graph.context(), GGML_TYPE_I64, shape_->sequences * shape_->rows);
  mask_ = ggml_new_tensor_4d(graph.context(), GGML_TYPE_F16, shape_->cells, shape_->rows, 1, shape_->sequences);
  ggml_set_input(places_);
  ggml_set_input(mask_);
  return {};
}

ggml_tensor* ContiguousAttention::adapt(ForwardGraph& graph, const Linear& linear, ggml_tensor* x, ggml_tensor* y) {
  return adapters_.adapt(graph, linear, x, y);
}

// The cells from `offset` on, after the rows were written: [head_dim, cells, n_head_kv, sequences].
ggml_tensor* ContiguousAttention::stored(ForwardGraph& graph, std::size_t offset, ggml_tensor* rows) const {
  ggml_context* context = graph.context();
  const std::size_t before_last_page = (pool_.pages - 1) * (pool_.page_bytes / pool_.row_bytes);
  ggml_tensor* pool = ggml_new_tensor_2d(context, GGML_TYPE_F16, config_.kv_width(),
                                         static_cast<std::int64_t>(before_last_page + pool_.page_tokens));
  ggml_backend_tensor_alloc(pool_buffer_.get(), pool, pool_.base + offset);
  ggml_tensor* written = ggml_set_rows(context, pool, rows, places_);
  const std::size_t head_bytes = pool_.row_bytes / config_.n_head_kv;
  ggml_tensor* cells = ggml_view_4d(context, written, config_.head_dim, config_.n_head_kv, shape_->cells,
                                    shape_->sequences, head_bytes, pool_.row_bytes, pool_.page_bytes, 0);
  return ggml_permute(context, cells, 0, 2, 1, 3);
}

ggml_tensor* ContiguousAttention::attend(ForwardGraph& graph, std::uint32_t layer, ggml_tensor* q, ggml_tensor* k,
                                         ggml_tensor* v) {
  ggml_context* context = graph.context();
  ggml_tensor* keys = stored(graph, pool_.key_offset(layer), k);
  ggml_tensor* values = stored(graph, pool_.value_offset(layer), v);
  ggml_tensor* by_sequence = ggml_view_4d(context, q, config_.head_dim, config_.n_head, shape_->rows, shape_->sequences,
                                          q->nb[1], q->nb[2], q->nb[2] * static_cast<std::size_t>(shape_->rows), 0);
  ggml_tensor* out = ggml_flash_attn_ext(context, ggml_permute(context, by_sequence, 0, 2, 1, 3), keys, values, mask_,
                                         1 / std::sqrt(static_cast<float>(config_.head_dim)), /*max_bias=*/0,
                                         /*logit_softcap=*/0);
  ggml_prec_set_acc(out, GGML_PREC_F32);
  return ggml_reshape_2d(context, out, config_.query_width(), graph.rows());
}

void ContiguousAttention::set_inputs() {
  const auto cells = static_cast<std::size_t>(shape_->cells);
  const std::size_t rows_of_page = pool_.page_bytes / pool_.row_bytes;
  std::vector<std::int64_t> places;
  std::vector<std::uint16_t> mask;
  places.reserve(static_cast<std::size_t>(places_->ne[0]));
  mask.reserve(static_cast<std::size_t>(ggml_nelements(mask_)));
  for (const SequenceRows& sequence : step_.sequences()) {
    for (std::uint32_t row = 0; row < sequence.rows; ++row) {
      const std::size_t position = sequence.first_position + row;
      places.push_back(
          static_cast<std::int64_t>(static_cast<std::size_t>(sequence.pages[0]) * rows_of_page + position));
      mask.insert(mask.end(), position + 1, float_to_half(0));
      mask.insert(mask.end(), cells - position - 1, float_to_half(-INFINITY));
    }
  }
  set(places_, places);
  set(mask_, mask);
}

}  // namespace molly::engine
