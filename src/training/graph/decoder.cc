#include "training/graph/decoder.h"

#include <cmath>

namespace molly::training {
namespace {

using engine::Projection;

// An operation's tensors in the words of the papers; T tokens in each of B rows.
class Builder {
 public:
  Builder(ggml_context* context, const Decoder& decoder, const DecoderInputs& inputs, const BatchShape& shape)
      : context_(context), decoder_(decoder), config_(decoder.config), inputs_(inputs), shape_(shape) {}

  ggml_tensor* embed() { return ggml_get_rows(context_, decoder_.token_embd, inputs_.tokens); }

  ggml_tensor* norm(ggml_tensor* x, ggml_tensor* weight) {
    return ggml_mul(context_, ggml_rms_norm(context_, x, config_.norm_epsilon), weight);
  }

  ggml_tensor* project(const Linear& linear, ggml_tensor* x) {
    ggml_tensor* y = ggml_mul_mat(context_, linear.weight, x);
    if (linear.bias != nullptr) y = ggml_add(context_, y, linear.bias);
    if (linear.a == nullptr) return y;
    ggml_tensor* shrunk = ggml_scale(context_, ggml_mul_mat(context_, linear.a, x), linear.scale);
    return ggml_add(context_, y, ggml_mul_mat(context_, linear.b, shrunk));
  }

  ggml_tensor* layer(const Layer& layer, ggml_tensor* x) {
    x = ggml_add(context_, x, project(layer[Projection::attn_output], attend(layer, norm(x, layer.attn_norm))));
    ggml_tensor* input = norm(x, layer.ffn_norm);
    ggml_tensor* gated = ggml_swiglu_split(context_, project(layer[Projection::ffn_gate], input),
                                           project(layer[Projection::ffn_up], input));
    return ggml_add(context_, x, project(layer[Projection::ffn_down], gated));
  }

 private:
  // [head_dim, heads, T * B]
  ggml_tensor* rotated(ggml_tensor* x, std::uint32_t heads, ggml_tensor* head_norm) {
    x = ggml_reshape_3d(context_, x, config_.head_dim, heads, shape_.tokens());
    if (head_norm != nullptr) x = norm(x, head_norm);
    const int mode = config_.rope_pairs == engine::RopePairs::halves ? GGML_ROPE_TYPE_NEOX : GGML_ROPE_TYPE_NORMAL;
    return ggml_rope_ext(context_, x, inputs_.positions, decoder_.rope_factors, static_cast<int>(config_.rope_dims),
                         mode, static_cast<int>(config_.n_context), config_.rope_base, config_.rope_frequency_scale, 0,
                         1, 0, 0);
  }

  // [head_dim, heads, T * B] -> [head_dim, T, heads, B]
  ggml_tensor* by_head(ggml_tensor* x, std::uint32_t heads) {
    x = ggml_reshape_4d(context_, x, config_.head_dim, heads, shape_.row_tokens, shape_.rows);
    return ggml_cont(context_, ggml_permute(context_, x, 0, 2, 1, 3));
  }

  // Each key-value head for all the query heads that share it: what ggml broadcasts itself has no backward form for
  // more than one row.
  ggml_tensor* shared_by_queries(ggml_tensor* x) {
    if (config_.n_head == config_.n_head_kv) return x;
    const std::int64_t inner = x->ne[0];
    const std::int64_t outer = x->ne[1];
    const std::int64_t groups = std::int64_t{config_.n_head_kv} * shape_.rows;
    const std::int64_t shared = config_.n_head / config_.n_head_kv;
    x = ggml_reshape_4d(context_, x, inner, outer, 1, groups);
    x = ggml_repeat_4d(context_, x, inner, outer, shared, groups);
    return ggml_reshape_4d(context_, x, inner, outer, config_.n_head, shape_.rows);
  }

  ggml_tensor* attend(const Layer& layer, ggml_tensor* input) {
    ggml_tensor* q = rotated(project(layer[Projection::attn_q], input), config_.n_head, layer.q_norm);
    ggml_tensor* k = rotated(project(layer[Projection::attn_k], input), config_.n_head_kv, layer.k_norm);
    ggml_tensor* v = ggml_reshape_4d(context_, project(layer[Projection::attn_v], input), config_.head_dim,
                                     config_.n_head_kv, shape_.row_tokens, shape_.rows);
    v = ggml_cont(context_, ggml_permute(context_, v, 1, 2, 0, 3));  // [T, head_dim, heads, B]
    ggml_tensor* scores = ggml_mul_mat(context_, shared_by_queries(by_head(k, config_.n_head_kv)),
                                       by_head(q, config_.n_head));  // [T keys, T queries, heads, B]
    const float scale = 1 / std::sqrt(static_cast<float>(config_.head_dim));
    ggml_tensor* shares = ggml_soft_max_ext(context_, scores, inputs_.mask, scale, 0);
    ggml_tensor* mixed = ggml_mul_mat(context_, shared_by_queries(v), shares);  // [head_dim, T, heads, B]
    mixed = ggml_cont(context_, ggml_permute(context_, mixed, 0, 2, 1, 3));
    return ggml_reshape_2d(context_, mixed, config_.query_width(), shape_.tokens());
  }

  ggml_context* context_;
  const Decoder& decoder_;
  const engine::ModelConfig& config_;
  const DecoderInputs& inputs_;
  const BatchShape& shape_;
};

}  // namespace

DecoderOutputs build_decoder(ggml_context* context, const Decoder& decoder, const DecoderInputs& inputs,
                             const BatchShape& shape) {
  Builder builder(context, decoder, inputs, shape);
  DecoderOutputs out;
  ggml_tensor* x = builder.embed();
  for (const Layer& layer : decoder.layers) {
    x = builder.layer(layer, x);
    out.layers.push_back(x);
  }
  out.hidden = builder.norm(x, decoder.output_norm);
  return out;
}

}  // namespace molly::training
