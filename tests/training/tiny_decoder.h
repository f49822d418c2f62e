#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "training/graph/arena.h"
#include "training/graph/base_model.h"
#include "training/graph/decoder.h"
#include "training/graph/training_graph.h"
#include "training/random.h"

namespace molly::training::test {

struct TinyShape {
  std::uint32_t heads = 4;
  std::uint32_t heads_kv = 2;
  std::uint32_t layers = 2;
  bool head_norms = false;  // qwen3
  bool biases = false;      // qwen2
};

// A decoder of random single-precision weights, all of them parameters.
class TinyDecoder {
 public:
  explicit TinyDecoder(const Device& device, const TinyShape& shape = {}) : shape_(shape) {
    decoder.config = {.architecture = "llama",
                      .n_vocab = 96,
                      .n_embd = 64,
                      .n_layer = shape.layers,
                      .n_head = shape.heads,
                      .n_head_kv = shape.heads_kv,
                      .head_dim = 16,
                      .n_ff = 96,
                      .n_context = 64,
                      .rope_dims = 16};
    describe();
    auto made = Arena::make(shapes_, device.buffer_type());
    EXPECT_TRUE(made);
    weights = *std::move(made);
    fill();
    assemble();
  }

  Decoder decoder;
  Arena weights;
  const std::vector<TensorShape>& shapes() const { return shapes_; }

 private:
  void describe() {
    const std::int64_t width = decoder.config.n_embd;
    const std::int64_t kv = decoder.config.kv_width();
    const std::int64_t q = decoder.config.query_width();
    shapes_.push_back({"token_embd.weight", width, decoder.config.n_vocab});
    shapes_.push_back({"output_norm.weight", width});
    for (std::uint32_t i = 0; i < shape_.layers; ++i) {
      const std::string prefix = "blk." + std::to_string(i) + ".";
      shapes_.push_back({prefix + "attn_norm.weight", width});
      shapes_.push_back({prefix + "ffn_norm.weight", width});
      shapes_.push_back({prefix + "attn_q.weight", width, q});
      shapes_.push_back({prefix + "attn_k.weight", width, kv});
      shapes_.push_back({prefix + "attn_v.weight", width, kv});
      shapes_.push_back({prefix + "attn_output.weight", q, width});
      shapes_.push_back({prefix + "ffn_gate.weight", width, decoder.config.n_ff});
      shapes_.push_back({prefix + "ffn_up.weight", width, decoder.config.n_ff});
      shapes_.push_back({prefix + "ffn_down.weight", decoder.config.n_ff, width});
      if (shape_.biases) {
        shapes_.push_back({prefix + "attn_q.bias", q});
        shapes_.push_back({prefix + "attn_k.bias", kv});
        shapes_.push_back({prefix + "attn_v.bias", kv});
      }
      if (shape_.head_norms) {
        shapes_.push_back({prefix + "attn_q_norm.weight", decoder.config.head_dim});
        shapes_.push_back({prefix + "attn_k_norm.weight", decoder.config.head_dim});
      }
    }
  }

  void fill() {
    Random random(7);
    for (ggml_tensor* tensor : weights.tensors()) {
      const bool is_matrix = tensor->ne[1] > 1;
      const float deviation = is_matrix ? 1 / std::sqrt(static_cast<float>(tensor->ne[0])) : 0.2F;
      const bool is_bias = std::string_view(ggml_get_name(tensor)).ends_with(".bias");
      for (float& number : numbers_of(tensor)) number = (is_matrix || is_bias ? 0 : 1) + deviation * random.normal();
    }
  }

  void assemble() {
    auto next = weights.tensors().begin();
    decoder.token_embd = decoder.output = *next++;
    decoder.output_norm = *next++;
    for (std::uint32_t i = 0; i < shape_.layers; ++i) {
      Layer& layer = decoder.layers.emplace_back();
      layer.attn_norm = *next++;
      layer.ffn_norm = *next++;
      for (Linear& linear : layer.projections) linear.weight = *next++;
      if (shape_.biases) {
        for (std::size_t j = 0; j < 3; ++j) layer.projections[j].bias = *next++;
      }
      if (shape_.head_norms) {
        layer.q_norm = *next++;
        layer.k_norm = *next++;
      }
    }
  }

  TinyShape shape_;
  std::vector<TensorShape> shapes_;
};

// Two rows; the first holds two segments.
inline Batch tiny_batch(const BatchShape& shape) {
  Batch out;
  Random random(3);
  for (std::uint32_t i = 0; i < shape.tokens(); ++i) {
    const std::uint32_t at = i % shape.row_tokens;
    const bool second = i < shape.row_tokens && at >= 20;
    out.tokens.push_back(static_cast<std::int32_t>(random.next() % 96));
    out.positions.push_back(static_cast<std::int32_t>(second ? at - 20 : at));
    out.segments.push_back(second ? 1 : 0);
  }
  return out;
}

}  // namespace molly::training::test
