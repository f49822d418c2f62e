#pragma once

#include <cstdint>
#include <expected>
#include <string>

#include "gguf/model_file.h"

namespace molly::sizing {

// A dense decoder's sizes, as far as memory depends on them.
struct ModelShape {
  std::uint64_t layers = 0;
  std::uint64_t embedding = 0;
  std::uint64_t heads = 0;
  std::uint64_t kv_heads = 0;
  std::uint64_t head_dim = 0;
  std::uint64_t feed_forward = 0;
  std::uint64_t vocabulary = 0;
  std::uint64_t trained_context = 0;  // tokens

  std::uint64_t query_width() const { return heads * head_dim; }
  std::uint64_t kv_width() const { return kv_heads * head_dim; }
};

// The error names the size that is missing or out of range, as the end of "molly-engine cannot serve it: ...". Sizes
// are bounded, so that products of two of them never wrap.
std::expected<ModelShape, std::string> read_shape(const gguf::ModelFile& model);

}  // namespace molly::sizing
