#if defined(__x86_64__)

// What other files share comes before the pragma: the linker keeps one copy of an inline function, which must run on
// every processor.
#include <immintrin.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "engine/kernels/half.h"
#include "engine/kernels/inline.h"
#include "engine/kernels/packed_layout.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")
#endif

namespace molly::engine {
namespace {

using Floats = __m512;
using Integers = __m512i;

MOLLY_INLINE Integers load(const std::byte* from) { return _mm512_loadu_si512(from); }
MOLLY_INLINE Floats load_halves(const std::byte* from) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
MOLLY_INLINE Floats load_unsigned(const std::byte* from) {
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}
MOLLY_INLINE Floats load_signed(const std::byte* from) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}
MOLLY_INLINE Integers broadcast_word(const std::byte* from) {
  std::int32_t word;
  std::memcpy(&word, from, sizeof word);
  return _mm512_set1_epi32(word);
}
MOLLY_INLINE Floats broadcast_float(const std::byte* from) {
  float number;
  std::memcpy(&number, from, sizeof number);
  return _mm512_set1_ps(number);
}

// Quants come from main memory one after another; the processor's own prefetching leaves half of its bandwidth unused.
template <std::size_t bytes>
MOLLY_INLINE void fetch_ahead(const std::byte* quants) {
  constexpr std::size_t ahead = 4096;
  MOLLY_UNROLL
  for (std::size_t i = 0; i < bytes; i += 64) __builtin_prefetch(quants + ahead + i);
}

// 32 inputs of 16 outputs: four inputs of each output to a register.
struct SubBlock {
  Integers weights[8];

  MOLLY_INLINE static SubBlock of_nibbles(const std::byte* quants) {
    const Integers low = _mm512_set1_epi8(15);
    SubBlock out;
    MOLLY_UNROLL
    for (int j = 0; j < 4; ++j) {
      const Integers pairs = load(quants + static_cast<std::ptrdiff_t>(j) * 64);
      out.weights[j] = _mm512_and_si512(pairs, low);
      out.weights[j + 4] = _mm512_and_si512(_mm512_srli_epi16(pairs, 4), low);
    }
    return out;
  }

  MOLLY_INLINE static SubBlock of_bytes(const std::byte* quants) {
    SubBlock out;
    MOLLY_UNROLL
    for (int j = 0; j < 8; ++j) out.weights[j] = load(quants + static_cast<std::ptrdiff_t>(j) * 64);
    return out;
  }

  template <int first, int end>
  MOLLY_INLINE Integers times(const std::byte* activations, Integers sum) const {
    MOLLY_UNROLL
    for (int j = first; j < end; ++j) {
      sum = _mm512_dpbusd_epi32(sum, weights[j], broadcast_word(activations + static_cast<std::ptrdiff_t>(j) * 4));
    }
    return sum;
  }
};

// The activations of a tile's rows, at places that are known from a single address.
template <PackedType type>
struct Rows {
  const std::byte* inputs;
  const std::byte* scales;
  const std::byte* sums;

  explicit Rows(const PackedTile& tile)
      : inputs(tile.activations),
        scales(tile.activations + activations_of(type).scales(tile.n_in)),
        sums(tile.activations + activations_of(type).sums(tile.n_in)) {}

  MOLLY_INLINE const std::byte* input(std::size_t row, std::size_t sub) const {
    return inputs + (sub * rows_per_tile + row) * sub_block;
  }
  MOLLY_INLINE const std::byte* scale(std::size_t row, std::size_t block) const {
    return scales + (block * rows_per_tile + row) * sizeof(float);
  }
  MOLLY_INLINE const std::byte* sum(std::size_t row, std::size_t place) const {
    return sums + (place * rows_per_tile + row) * sizeof(std::int32_t);
  }
};

template <std::size_t rows>
MOLLY_INLINE void store(const PackedTile& tile, const Floats (&sums)[rows]) {
  const auto mask = static_cast<__mmask16>((1U << tile.outputs) - 1);
  MOLLY_UNROLL
  for (std::size_t r = 0; r < rows; ++r) {
    _mm512_mask_storeu_ps(row_of(tile.y, r), mask, sums[r]);
  }
}

// Formats with a scale for 32 inputs.
template <PackedType type, std::size_t rows>
void multiply_small_blocks(const PackedTile& tile) {
  const Rows<type> x(tile);
  Floats sums[rows];
  MOLLY_UNROLL
  for (std::size_t r = 0; r < rows; ++r) sums[r] = _mm512_setzero_ps();
  constexpr std::size_t quant_bytes = layout_of(type).quant_bytes;
  for (std::size_t b = 0; b < tile.n_in / sub_block; ++b) {
    const std::byte* quants = tile.quants + b * quant_bytes;
    fetch_ahead<quant_bytes>(quants);
    tile.prefetcher->ask();
    const SubBlock w = type == PackedType::q4_0 ? SubBlock::of_nibbles(quants) : SubBlock::of_bytes(quants);
    const Floats scale = load_halves(tile.scales + b * 32);
    MOLLY_UNROLL
    for (std::size_t r = 0; r < rows; ++r) {
      const Integers dot = w.template times<0, 8>(x.input(r, b), broadcast_word(x.sum(r, b)));
      const Floats both = _mm512_mul_ps(scale, broadcast_float(x.scale(r, b)));
      sums[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), both, sums[r]);
    }
  }
  store(tile, sums);
}

constexpr std::size_t sub_blocks_of_super_block = 8;

template <std::size_t rows>
struct Accumulators {
  Floats of_block[rows];
  Floats of_all[rows];

  MOLLY_INLINE static void clear(Floats (&sums)[rows]) {
    MOLLY_UNROLL
    for (std::size_t r = 0; r < rows; ++r) sums[r] = _mm512_setzero_ps();
  }

  template <PackedType type>
  MOLLY_INLINE void end_block(const Rows<type>& x, std::size_t block) {
    MOLLY_UNROLL
    for (std::size_t r = 0; r < rows; ++r) {
      of_all[r] = _mm512_fmadd_ps(of_block[r], broadcast_float(x.scale(r, block)), of_all[r]);
    }
  }
};

template <std::size_t rows>
void multiply_q4_k(const PackedTile& tile) {
  constexpr PackedLayout layout = layout_of(PackedType::q4_k);
  const Rows<PackedType::q4_k> x(tile);
  Accumulators<rows> sums;
  sums.clear(sums.of_all);
  for (std::size_t b = 0; b < tile.n_in / layout.block; ++b) {
    const std::byte* scales = tile.scales + b * layout.scale_bytes;
    const Floats d = load_halves(scales);
    const Floats d_minimum = load_halves(scales + 32);
    sums.clear(sums.of_block);
    for (std::size_t s = 0; s < sub_blocks_of_super_block; ++s) {
      const std::size_t sub = b * sub_blocks_of_super_block + s;
      fetch_ahead<layout.quant_bytes>(tile.quants + sub * layout.quant_bytes);
      tile.prefetcher->ask();
      const SubBlock w = SubBlock::of_nibbles(tile.quants + sub * layout.quant_bytes);
      const Floats scale = _mm512_mul_ps(d, load_unsigned(scales + 64 + s * 32));
      const Floats minimum = _mm512_mul_ps(d_minimum, load_unsigned(scales + 64 + s * 32 + 16));
      MOLLY_UNROLL
      for (std::size_t r = 0; r < rows; ++r) {
        const Integers dot = w.template times<0, 8>(x.input(r, sub), _mm512_setzero_si512());
        const Floats above = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), scale, sums.of_block[r]);
        sums.of_block[r] = _mm512_fnmadd_ps(minimum, broadcast_float(x.sum(r, sub)), above);
      }
    }
    sums.end_block(x, b);
  }
  store(tile, sums.of_all);
}

template <std::size_t rows>
void multiply_q6_k(const PackedTile& tile) {
  constexpr PackedLayout layout = layout_of(PackedType::q6_k);
  const Rows<PackedType::q6_k> x(tile);
  Accumulators<rows> sums;
  sums.clear(sums.of_all);
  for (std::size_t b = 0; b < tile.n_in / layout.block; ++b) {
    const std::byte* scales = tile.scales + b * layout.scale_bytes;
    const Floats d = load_halves(scales);
    sums.clear(sums.of_block);
    for (std::size_t s = 0; s < sub_blocks_of_super_block; ++s) {
      const std::size_t sub = b * sub_blocks_of_super_block + s;
      fetch_ahead<layout.quant_bytes>(tile.quants + sub * layout.quant_bytes);
      tile.prefetcher->ask();
      const SubBlock w = SubBlock::of_bytes(tile.quants + sub * layout.quant_bytes);
      const Floats first = _mm512_mul_ps(d, load_signed(scales + 32 + s * 32));
      const Floats second = _mm512_mul_ps(d, load_signed(scales + 32 + s * 32 + 16));
      MOLLY_UNROLL
      for (std::size_t r = 0; r < rows; ++r) {
        const Integers low = w.template times<0, 4>(x.input(r, sub), broadcast_word(x.sum(r, 2 * sub)));
        const Integers high = w.template times<4, 8>(x.input(r, sub), broadcast_word(x.sum(r, 2 * sub + 1)));
        const Floats half = _mm512_fmadd_ps(_mm512_cvtepi32_ps(low), first, sums.of_block[r]);
        sums.of_block[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(high), second, half);
      }
    }
    sums.end_block(x, b);
  }
  store(tile, sums.of_all);
}

template <std::size_t rows>
void multiply_rows(PackedType type, const PackedTile& tile) {
  switch (type) {
    case PackedType::q4_0: return multiply_small_blocks<PackedType::q4_0, rows>(tile);
    case PackedType::q8_0: return multiply_small_blocks<PackedType::q8_0, rows>(tile);
    case PackedType::q4_k: return multiply_q4_k<rows>(tile);
    case PackedType::q6_k: return multiply_q6_k<rows>(tile);
  }
}

template <std::size_t... rows>
void multiply_any(PackedType type, const PackedTile& tile, std::uint32_t count, std::index_sequence<rows...>) {
  using Function = void (*)(PackedType, const PackedTile&);
  static constexpr Function by_rows[] = {multiply_rows<rows + 1>...};
  by_rows[count - 1](type, tile);
}

void multiply(PackedType type, const PackedTile& tile, std::uint32_t rows) {
  multiply_any(type, tile, rows, std::make_index_sequence<rows_per_tile>());
}

// Where the number of the largest magnitude is negative, the largest number; as ggml's quantize_row_q8_K wants it.
MOLLY_INLINE float number_of_largest_magnitude(const float* x, std::size_t count) {
  Floats most = _mm512_setzero_ps();
  Floats least = _mm512_setzero_ps();
  for (std::size_t i = 0; i < count; i += 16) {
    most = _mm512_max_ps(most, _mm512_loadu_ps(x + i));
    least = _mm512_min_ps(least, _mm512_loadu_ps(x + i));
  }
  const float largest = _mm512_reduce_max_ps(most);
  const float smallest = _mm512_reduce_min_ps(least);
  return largest >= -smallest ? largest : smallest;
}

// Sub-blocks lie apart: between them are those of the tile's other rows.
MOLLY_INLINE void quantize_block(const float* x, std::size_t count, float inverse, std::byte* to) {
  const Floats factor = _mm512_set1_ps(inverse);
  for (std::size_t i = 0; i < count; i += 16) {
    const Integers rounded = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + i), factor));
    std::byte* place = to + i / sub_block * rows_per_tile * sub_block + i % sub_block;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(place), _mm512_cvtsepi32_epi8(rounded));
  }
}

MOLLY_INLINE std::int32_t sum_of_sixteen(const std::byte* numbers) {
  return _mm512_reduce_add_epi32(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(numbers))));
}

// As ggml's quantize_row_q8_0 and quantize_row_q8_K; the former's scale is rounded to half precision.
MOLLY_INLINE float quantize_scaled(const float* x, std::uint32_t block, std::byte* to) {
  const float most = number_of_largest_magnitude(x, block);
  if (block == 256) {
    const float inverse = most == 0 ? 0 : -127 / most;
    quantize_block(x, block, inverse, to);
    return most == 0 ? 0 : 1 / inverse;
  }
  const float magnitude = std::fabs(most);
  quantize_block(x, block, magnitude == 0 ? 0 : 127 / magnitude, to);
  return half_to_float(float_to_half(magnitude / 127));
}

MOLLY_INLINE void store_sum(PackedType type, std::int32_t sum, std::byte* to) {
  const std::int32_t offset = -offset_of(type) * sum;
  const auto number = static_cast<float>(sum);
  std::memcpy(to, type == PackedType::q4_k ? static_cast<const void*>(&number) : &offset, sizeof offset);
}

void quantize(PackedType type, const float* x, std::uint32_t n_in, std::byte* tile, std::uint32_t row) {
  const ActivationLayout layout = activations_of(type);
  constexpr std::size_t word = sizeof(float);
  std::byte* inputs = tile + std::size_t{row} * sub_block;
  std::byte* scales = tile + layout.scales(n_in) + row * word;
  std::byte* sums = tile + layout.sums(n_in) + row * word;
  for (std::uint32_t i = 0; i < n_in; i += layout.block, scales += rows_per_tile * word) {
    const float scale = quantize_scaled(x + i, layout.block, inputs + std::size_t{i} * rows_per_tile);
    std::memcpy(scales, &scale, sizeof scale);
  }
  for (std::uint32_t i = 0; i < n_in; i += sub_block) {
    const std::byte* numbers = inputs + std::size_t{i} * rows_per_tile;
    const std::int32_t first = sum_of_sixteen(numbers);
    const std::int32_t second = sum_of_sixteen(numbers + 16);
    const bool apart = layout.sum_block == 16;
    store_sum(type, apart ? first : first + second, sums);
    sums += rows_per_tile * word;
    if (!apart) continue;
    store_sum(type, second, sums);
    sums += rows_per_tile * word;
  }
}

}  // namespace

const PackedKernels vnni_kernels = {.quantize = quantize, .multiply = multiply};

}  // namespace molly::engine

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif
