#pragma once

#include <cstdint>
#include <string_view>

#include "gguf/model_file.h"
#include "sizing/device.h"
#include "sizing/model_shape.h"

// Bytes of molly-engine's parts. What is estimated errs to the high side.
namespace molly::sizing {

// How keys and values, or an adapter's numbers, are stored: IEEE half precision, or blocks of 32 in 34 bytes.
enum class NumberType : std::uint8_t { f16, q8_0 };
std::string_view to_string(NumberType type);

// Weights while the model is served.
struct WeightBytes {
  std::uint64_t copied = 0;  // fused, or in the processor's own layout
  std::uint64_t mapped = 0;  // pages of the file
  std::uint64_t total() const { return copied + mapped; }
  bool operator==(const WeightBytes&) const = default;
};
WeightBytes weight_bytes(const gguf::ModelFile& model, const Device& device);

// One page: keys and values of so many tokens in every layer. Exactly the engine's.
std::uint64_t page_bytes(const ModelShape& shape, std::uint64_t page_tokens, NumberType type);

// Pages of an adapter of that rank on every projection; 0 where a single row is longer than a page.
std::uint64_t adapter_pages(const ModelShape& shape, std::uint64_t rank, NumberType type, std::uint64_t page_bytes);

// Of the largest step.
std::uint64_t activation_bytes(const ModelShape& shape);

// Activations, the vocabulary, and the process itself.
std::uint64_t compute_bytes(const ModelShape& shape);

}  // namespace molly::sizing
