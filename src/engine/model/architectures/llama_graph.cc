#include "engine/model/architectures/dense.h"
#include "engine/model/graph.h"

namespace molly::engine {

// Touvron et al., LLaMA, arXiv 2302.13971, section 2.2: pre-norm, rotary embedding, SwiGLU.
ggml_tensor* llama_layers(ForwardGraph& graph, ggml_tensor* embeddings) {
  const ModelConfig& config = graph.config();
  ggml_tensor* x = embeddings;
  for (std::uint32_t layer = 0; layer < config.n_layer; ++layer) {
    const LayerWeights& weights = graph.weights().layers[layer];
    const auto qkv = graph.project(weights.qkv, graph.norm(x, weights.attn_norm));
    ggml_tensor* q = graph.rotate(graph.heads(qkv[0], config.n_head));
    ggml_tensor* k = graph.rotate(graph.heads(qkv[1], config.n_head_kv));
    x = graph.add(x, graph.project(weights.attn_output, graph.attend(layer, q, k, qkv[2])));
    ggml_tensor* gated = graph.gated(weights.gate_up, graph.norm(x, weights.ffn_norm));
    x = graph.add(x, graph.project(weights.ffn_down, gated));
  }
  return x;
}

}  // namespace molly::engine
