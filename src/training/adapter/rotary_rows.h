#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace molly::training {

// Two orders of the rows of q and k. Transformers rotates row i of a head with row i + d/2; llama.cpp stores bases of
// the architecture "llama" so that the two are neighbours (LlamaModel.permute of its convert_hf_to_gguf.py).
// `rows` holds rows of `row_length` numbers; their count is a multiple of 2 * heads.

// From Transformers' order to llama.cpp's.
std::vector<float> interleaved(std::span<const float> rows, std::uint32_t row_length, std::uint32_t heads);
// The inverse.
std::vector<float> in_halves(std::span<const float> rows, std::uint32_t row_length, std::uint32_t heads);

}  // namespace molly::training
