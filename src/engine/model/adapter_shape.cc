#include "engine/model/adapter_shape.h"

namespace molly::engine {

BaseShape adapter_shape(const ModelConfig& config) {
  BaseShape shape;
  shape.architecture = config.architecture;
  shape.layers = config.n_layer;
  const auto set = [&](Projection projection, std::uint32_t n_in, std::uint32_t n_out) {
    shape.projections[static_cast<std::size_t>(projection)] = {n_in, n_out};
  };
  set(Projection::attn_q, config.n_embd, config.query_width());
  set(Projection::attn_k, config.n_embd, config.kv_width());
  set(Projection::attn_v, config.n_embd, config.kv_width());
  set(Projection::attn_output, config.query_width(), config.n_embd);
  set(Projection::ffn_gate, config.n_embd, config.n_ff);
  set(Projection::ffn_up, config.n_embd, config.n_ff);
  set(Projection::ffn_down, config.n_ff, config.n_embd);
  if (config.rope_pairs == RopePairs::neighbours) {
    shape.permuted_heads = config.n_head;
    shape.permuted_heads_kv = config.n_head_kv;
  }
  return shape;
}

}  // namespace molly::engine
