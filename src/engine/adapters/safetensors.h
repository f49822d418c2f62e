#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"

namespace molly::engine {

// A tensor of a safetensors file, checked: its bytes are as many as its shape and type need.
struct SafeTensor {
  std::string name;
  std::string dtype;                 // "F32", "F16", "BF16", "I64", ...
  std::vector<std::uint64_t> shape;  // outermost first; at most four
  std::span<const std::uint8_t> bytes;
};

// Format: https://huggingface.co/docs/safetensors, "Format". A length of eight bytes, a JSON header of that length, the
// numbers. Tensors neither overlap nor leave gaps, and end where the file ends. invalid_request says what is wrong.
// The bytes are views into `file`.
Result<std::vector<SafeTensor>> parse_safetensors(std::span<const std::uint8_t> file);

}  // namespace molly::engine
