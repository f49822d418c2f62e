#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/error.h"
#include "engine/adapters/byte_source.h"

namespace molly::engine {

// A tensor of a safetensors file, checked: it has as many bytes as its shape and type need.
struct SafeTensor {
  std::string name;
  std::string dtype;                 // "F32", "F16", "BF16", "I64", ...
  std::vector<std::uint64_t> shape;  // outermost first; at most four
  std::uint64_t offset = 0;          // in the file
};

// Format: https://huggingface.co/docs/safetensors, "Format". A length of eight bytes, a JSON header of that length, the
// numbers. Tensors neither overlap nor leave gaps, and end where the file ends. invalid_request says what is wrong.
Result<std::vector<SafeTensor>> parse_safetensors(const ByteSource& file);

}  // namespace molly::engine
