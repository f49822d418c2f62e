#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/kernels/isa.h"
#include "engine/kernels/prefetcher.h"

// Low-rank adapters over a mixed batch: y += scale * B (A x), with another A and B in every row if need be
// (Hu et al., LoRA, arXiv 2106.09685, equation 3; batched as SGMV in Punica, arXiv 2310.18547, section 4).
namespace molly::engine {

// How the numbers of a factor are stored along a row: IEEE half precision, or ggml's Q8_0: blocks of 32 numbers, each
// an F16 scale and 32 signed bytes (34 bytes).
enum class FactorType : std::uint8_t { f16, q8_0 };

std::size_t row_bytes(FactorType type, std::size_t elements);  // elements: a multiple of 32 for q8_0

// One adapter's part in one projection. Rows lie anywhere (in pages of the pool), each contiguous and 64-byte aligned.
struct LoraFactors {
  std::span<const std::byte* const> a;  // rank rows of n_in numbers
  std::span<const std::byte* const>
      b;  // rank rows of n_out numbers: B transposed, so that expand needs no sums across lanes
  FactorType type = FactorType::f16;
  float scale = 1;  // alpha / rank
  std::uint32_t rank() const { return static_cast<std::uint32_t>(a.size()); }
};

// Rows of the batch that share an adapter: consecutive rows of one sequence, or of several with the same adapter, whose
// factors are then read once for four rows.
// A row that mixes adapters appears in several of these.
struct LoraRows {
  std::uint32_t first_row = 0;
  std::uint32_t rows = 0;
  std::uint32_t adapter = 0;  // index of the step's adapters
  float weight = 1;           // of the adapter in the row's mixture
  std::size_t hidden = 0;     // where in the scratch its A x starts: rows x (sum of ranks over segments) floats
};

// One projection inside a fused linear: q, k and v share x and lie beside each other in y.
struct LoraSegment {
  std::uint32_t first_column = 0;  // in y
  std::uint32_t columns = 0;       // n_out
};

// A matrix of floats whose rows are `stride` bytes apart.
struct ConstRows {
  const float* data = nullptr;
  std::size_t stride = 0;
};
struct MutableRows {
  float* data = nullptr;
  std::size_t stride = 0;
};

inline const float* row_of(const ConstRows& matrix, std::size_t row) {
  return reinterpret_cast<const float*>(reinterpret_cast<const std::byte*>(matrix.data) + row * matrix.stride);
}
inline float* row_of(const MutableRows& matrix, std::size_t row) {
  return reinterpret_cast<float*>(reinterpret_cast<std::byte*>(matrix.data) + row * matrix.stride);
}

// One fused linear of one layer: factors[adapter * segments.size() + segment]; rank 0 where the adapter leaves that
// projection alone.
struct LoraLinear {
  std::uint32_t n_in = 0;
  std::span<const LoraSegment> segments;
  std::span<const LoraFactors> factors;
  std::span<const LoraRows> rows;
};

// Both are called by every thread of a pool at once, each with its number; thread `thread` of `threads` does its share.
// shrink: hidden = weight * scale * A x for every LoraRows. Between shrink and expand all threads must have met.
void lora_shrink(Isa isa, const LoraLinear& linear, ConstRows x, std::span<float> hidden, int thread, int threads);
// expand: y += B hidden.
void lora_expand(Isa isa, const LoraLinear& linear, std::span<const float> hidden, MutableRows y, int thread,
                 int threads);

// Every row of every factor, those of shrink first.
std::vector<MemoryRun> memory_of(const LoraLinear& linear);

// Floats of scratch that these rows need, and the assignment of LoraRows::hidden. `rank_sums[adapter]` is the largest
// sum of ranks over the segments of any one linear.
std::size_t place_hidden(std::span<LoraRows> rows, std::span<const std::uint32_t> rank_sums);

}  // namespace molly::engine
