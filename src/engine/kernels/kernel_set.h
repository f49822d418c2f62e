#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/kernels/attention.h"
#include "engine/kernels/isa.h"
#include "engine/kernels/lora.h"

// What every instruction set implements: units of work that one thread does on its own. How a step is divided into
// units is the same for all instruction sets (lora_units.h, attention.cc).
namespace molly::engine {

inline constexpr std::uint32_t ranks_per_unit = 8;

// Up to eight rows of a factor, which are read once for all rows of the batch in the unit, and the rows that the thread
// reads next, so that they can be on their way.
struct FactorRows {
  FactorType type = FactorType::f16;
  std::uint32_t count = 0;
  std::array<const std::byte*, ranks_per_unit> rows = {};
  std::array<const std::byte*, ranks_per_unit> ahead = {};
};

// hidden[row][rank] = scale * a[rank] . x[row]
struct ShrinkUnit {
  FactorRows a;
  std::uint32_t n_in = 0;
  std::uint32_t rows = 0;
  float scale = 1;
  ConstRows x;
  float* hidden = nullptr;
  std::size_t hidden_stride = 0;  // floats
};

// y[row][column] += hidden[row][rank] * b[rank][first_column + column]
struct ExpandUnit {
  FactorRows b;
  std::uint32_t first_column = 0;  // in a row of b; a multiple of 32
  std::uint32_t columns = 0;
  std::uint32_t rows = 0;
  const float* hidden = nullptr;
  std::size_t hidden_stride = 0;  // floats
  MutableRows y;                  // from first_column on
};

// Consecutive rows of one sequence against some of its key-value heads.
struct AttentionBlock {
  const PagedKv* kv = nullptr;
  std::span<const PageId> pages;
  std::uint32_t rows = 0;
  std::uint32_t first_position = 0;
  std::uint32_t group = 1;       // query heads per key-value head
  std::uint32_t first_head = 0;  // key-value head
  std::uint32_t heads = 0;
  float scale = 1;
  HeadRows queries;  // from the block's first row on
  HeadRows output;

  std::size_t query_vectors() const { return std::size_t{rows} * group; }  // per key-value head
};

// Tokens whose keys and values are worked on at a time. The order of a row's additions follows from this alone.
inline constexpr std::uint32_t tile_tokens = 64;

// Floats of scratch for an AttentionBlock.
inline std::size_t attention_scratch(std::size_t heads, std::size_t query_vectors, std::size_t head_dim) {
  return 2 * heads * query_vectors * (head_dim + 1) + query_vectors * tile_tokens + 2 * tile_tokens * head_dim;
}

struct KernelSet {
  void (*shrink)(const ShrinkUnit& unit);
  void (*expand)(const ExpandUnit& unit);
  void (*store_row)(const float* source, std::size_t numbers, KvType type, std::byte* row);
  void (*attend)(const AttentionBlock& block, float* scratch);  // scratch is 64-byte aligned
};

extern const KernelSet portable_kernels;
#if defined(__x86_64__)
extern const KernelSet avx2_kernels;
extern const KernelSet avx512_kernels;
#elif defined(__aarch64__)
extern const KernelSet neon_kernels;
#endif

const KernelSet& kernel_set(Isa isa);

}  // namespace molly::engine
