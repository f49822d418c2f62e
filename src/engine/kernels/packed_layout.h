#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/kernels/packed.h"

// Where everything lies in a packed matrix and in a row of activations.
namespace molly::engine {

inline constexpr std::uint32_t outputs_per_group = 16;
inline constexpr std::uint32_t sub_block = 32;  // inputs that a step of the kernels takes

// A group of 16 outputs: the quants of all its blocks, then what scales them.
struct PackedLayout {
  std::uint32_t block = 32;         // inputs that share a scale in the file's format
  std::uint32_t quant_bytes = 256;  // of a sub-block
  std::uint32_t scale_bytes = 32;   // of a block

  std::size_t quants_of_group(std::uint32_t n_in) const { return std::size_t{n_in} / sub_block * quant_bytes; }
  std::size_t bytes_of_group(std::uint32_t n_in) const {
    return (quants_of_group(n_in) + std::size_t{n_in} / block * scale_bytes + 63) / 64 * 64;
  }
};

// q4_0: scales are 16 halves. q8_0: quants are bytes, 128 added; scales likewise. q4_k: 16 halves of d, 16 of dmin,
// then for each sub-block 16 bytes of scales and 16 of minima. q6_k: quants are bytes; 16 halves of d, then for each
// half of a sub-block 16 signed bytes of scales.
constexpr PackedLayout layout_of(PackedType type) {
  switch (type) {
    case PackedType::q4_0: return {.block = 32, .quant_bytes = 256, .scale_bytes = 32};
    case PackedType::q8_0: return {.block = 32, .quant_bytes = 512, .scale_bytes = 32};
    case PackedType::q4_k: return {.block = 256, .quant_bytes = 256, .scale_bytes = 64 + 8 * 32};
    case PackedType::q6_k: return {.block = 256, .quant_bytes = 512, .scale_bytes = 32 + 16 * 16};
  }
  return {};
}

// What was added to weights to make them unsigned.
constexpr std::int32_t offset_of(PackedType type) {
  switch (type) {
    case PackedType::q4_0: return 8;
    case PackedType::q8_0: return 128;
    case PackedType::q4_k: return 0;
    case PackedType::q6_k: return 32;
  }
  return 0;
}

inline constexpr std::uint32_t rows_per_tile = 8;

// Activations of eight rows, side by side so that every place is a constant away from the last: the signed bytes of
// each sub-block, a float scale for each block, and for each `sum_block` inputs a word: minus the weights' offset times
// their sum as an integer; for q4_k their sum as a float.
struct ActivationLayout {
  std::uint32_t block = 32;
  std::uint32_t sum_block = 32;

  std::size_t scales(std::uint32_t n_in) const { return std::size_t{n_in} * rows_per_tile; }
  std::size_t sums(std::uint32_t n_in) const {
    return scales(n_in) + std::size_t{n_in} / block * rows_per_tile * sizeof(float);
  }
  std::size_t bytes(std::uint32_t n_in) const {
    return (sums(n_in) + std::size_t{n_in} / sum_block * rows_per_tile * sizeof(std::int32_t) + 63) / 64 * 64;
  }
};

constexpr ActivationLayout activations_of(PackedType type) {
  return {.block = layout_of(type).block, .sum_block = type == PackedType::q6_k ? 16U : 32U};
}

// Consecutive outputs of a few rows.
struct PackedTile {
  const std::byte* quants = nullptr;
  const std::byte* scales = nullptr;
  std::uint32_t n_in = 0;
  std::uint32_t outputs = outputs_per_group;
  const std::byte* activations = nullptr;  // of the tile's rows
  MutableRows y;                           // from the first row and output on
  Prefetcher* prefetcher = nullptr;        // asked once for each sub-block
};

struct PackedKernels {
  void (*quantize)(PackedType type, const float* x, std::uint32_t n_in, std::byte* tile, std::uint32_t row);
  void (*multiply)(PackedType type, const PackedTile& tile, std::uint32_t rows);  // 1 to rows_per_tile
};

#if defined(__x86_64__)
extern const PackedKernels vnni_kernels;
#endif

}  // namespace molly::engine
