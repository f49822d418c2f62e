#include "engine/model/architectures/dense.h"

namespace molly::engine {
namespace {

LayerWeights layer_weights(const ModelConfig& config, WeightMap& map, std::uint32_t layer) {
  const std::string prefix = "blk." + std::to_string(layer) + ".";
  const std::int64_t width = config.n_embd;
  LayerWeights out;
  out.attn_norm = map.plain(prefix + "attn_norm.weight", width);
  out.ffn_norm = map.plain(prefix + "ffn_norm.weight", width);
  out.qkv = map.linears(layer, {{Projection::attn_q, width, config.query_width()},
                                {Projection::attn_k, width, config.kv_width()},
                                {Projection::attn_v, width, config.kv_width()}});
  out.attn_output = map.linear(layer, {Projection::attn_output, config.query_width(), width});
  out.gate_up =
      map.linears(layer, {{Projection::ffn_gate, width, config.n_ff}, {Projection::ffn_up, width, config.n_ff}});
  out.ffn_down = map.linear(layer, {Projection::ffn_down, config.n_ff, width});
  return out;
}

}  // namespace

Weights llama_weights(const ModelConfig& config, WeightMap& map) {
  Weights out;
  out.token_embd = map.plain("token_embd.weight", config.n_embd, config.n_vocab);
  out.output_norm = map.plain("output_norm.weight", config.n_embd);
  const bool tied = !map.has("output.weight");
  out.output = map.matrix(tied ? "token_embd.weight" : "output.weight", config.n_embd, config.n_vocab);
  out.rope_factors = map.optional_plain("rope_freqs.weight", config.rope_dims / 2);
  for (std::uint32_t layer = 0; layer < config.n_layer; ++layer) {
    out.layers.push_back(layer_weights(config, map, layer));
  }
  return out;
}

}  // namespace molly::engine
