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

// The rows of a tile: where their quantized inputs, scales and sums are.
template <PackedType type, int rows>
struct Rows {
  const std::byte* inputs[rows];
  std::size_t scales;
  std::size_t sums;

  explicit Rows(const PackedTile& tile)
      : scales(activations_of(type).scales(tile.n_in)), sums(activations_of(type).sums(tile.n_in)) {
    for (int r = 0; r < rows; ++r) {
      inputs[r] = tile.activations + static_cast<std::size_t>(r) * tile.activation_stride;
    }
  }

  MOLLY_INLINE const std::byte* input(int row, std::size_t sub) const { return inputs[row] + sub * sub_block; }
  MOLLY_INLINE const std::byte* scale(int row, std::size_t block) const { return inputs[row] + scales + block * 4; }
  MOLLY_INLINE const std::byte* sum(int row, std::size_t place) const { return inputs[row] + sums + place * 4; }
};

template <int rows>
MOLLY_INLINE void store(const PackedTile& tile, const Floats (&sums)[rows]) {
  const auto mask = static_cast<__mmask16>((1U << tile.outputs) - 1);
  MOLLY_UNROLL
  for (int r = 0; r < rows; ++r) {
    _mm512_mask_storeu_ps(row_of(tile.y, static_cast<std::size_t>(r)), mask, sums[r]);
  }
}

// Formats with a scale for 32 inputs.
template <PackedType type, int rows>
void multiply_small_blocks(const PackedTile& tile) {
  const Rows<type, rows> x(tile);
  Floats sums[rows];
  MOLLY_UNROLL
  for (int r = 0; r < rows; ++r) sums[r] = _mm512_setzero_ps();
  constexpr std::size_t quant_bytes = layout_of(type).quant_bytes;
  for (std::size_t b = 0; b < tile.n_in / sub_block; ++b) {
    const std::byte* quants = tile.quants + b * quant_bytes;
    const SubBlock w = type == PackedType::q4_0 ? SubBlock::of_nibbles(quants) : SubBlock::of_bytes(quants);
    const Floats scale = load_halves(tile.scales + b * 32);
    MOLLY_UNROLL
    for (int r = 0; r < rows; ++r) {
      const Integers dot = w.template times<0, 8>(x.input(r, b), broadcast_word(x.sum(r, b)));
      const Floats both = _mm512_mul_ps(scale, broadcast_float(x.scale(r, b)));
      sums[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), both, sums[r]);
    }
  }
  store(tile, sums);
}

constexpr std::size_t sub_blocks_of_super_block = 8;

template <int rows>
struct Accumulators {
  Floats of_block[rows];
  Floats of_all[rows];

  MOLLY_INLINE static void clear(Floats (&sums)[rows]) {
    MOLLY_UNROLL
    for (int r = 0; r < rows; ++r) sums[r] = _mm512_setzero_ps();
  }

  template <PackedType type>
  MOLLY_INLINE void end_block(const Rows<type, rows>& x, std::size_t block) {
    MOLLY_UNROLL
    for (int r = 0; r < rows; ++r) {
      of_all[r] = _mm512_fmadd_ps(of_block[r], broadcast_float(x.scale(r, block)), of_all[r]);
    }
  }
};

template <int rows>
void multiply_q4_k(const PackedTile& tile) {
  constexpr PackedLayout layout = layout_of(PackedType::q4_k);
  const Rows<PackedType::q4_k, rows> x(tile);
  Accumulators<rows> sums;
  sums.clear(sums.of_all);
  for (std::size_t b = 0; b < tile.n_in / layout.block; ++b) {
    const std::byte* scales = tile.scales + b * layout.scale_bytes;
    const Floats d = load_halves(scales);
    const Floats d_minimum = load_halves(scales + 32);
    sums.clear(sums.of_block);
    for (std::size_t s = 0; s < sub_blocks_of_super_block; ++s) {
      const std::size_t sub = b * sub_blocks_of_super_block + s;
      const SubBlock w = SubBlock::of_nibbles(tile.quants + sub * layout.quant_bytes);
      const Floats scale = _mm512_mul_ps(d, load_unsigned(scales + 64 + s * 32));
      const Floats minimum = _mm512_mul_ps(d_minimum, load_unsigned(scales + 64 + s * 32 + 16));
      MOLLY_UNROLL
      for (int r = 0; r < rows; ++r) {
        const Integers dot = w.template times<0, 8>(x.input(r, sub), _mm512_setzero_si512());
        const Floats above = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), scale, sums.of_block[r]);
        sums.of_block[r] = _mm512_fnmadd_ps(minimum, broadcast_float(x.sum(r, sub)), above);
      }
    }
    sums.end_block(x, b);
  }
  store(tile, sums.of_all);
}

template <int rows>
void multiply_q6_k(const PackedTile& tile) {
  constexpr PackedLayout layout = layout_of(PackedType::q6_k);
  const Rows<PackedType::q6_k, rows> x(tile);
  Accumulators<rows> sums;
  sums.clear(sums.of_all);
  for (std::size_t b = 0; b < tile.n_in / layout.block; ++b) {
    const std::byte* scales = tile.scales + b * layout.scale_bytes;
    const Floats d = load_halves(scales);
    sums.clear(sums.of_block);
    for (std::size_t s = 0; s < sub_blocks_of_super_block; ++s) {
      const std::size_t sub = b * sub_blocks_of_super_block + s;
      const SubBlock w = SubBlock::of_bytes(tile.quants + sub * layout.quant_bytes);
      const Floats first = _mm512_mul_ps(d, load_signed(scales + 32 + s * 32));
      const Floats second = _mm512_mul_ps(d, load_signed(scales + 32 + s * 32 + 16));
      MOLLY_UNROLL
      for (int r = 0; r < rows; ++r) {
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

template <int rows>
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
  static constexpr Function by_rows[] = {multiply_rows<static_cast<int>(rows) + 1>...};
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

MOLLY_INLINE void quantize_block(const float* x, std::size_t count, float inverse, std::byte* to) {
  const Floats factor = _mm512_set1_ps(inverse);
  for (std::size_t i = 0; i < count; i += 16) {
    const Integers rounded = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + i), factor));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), _mm512_cvtsepi32_epi8(rounded));
  }
}

MOLLY_INLINE std::int32_t sum_of(const std::byte* numbers, std::uint32_t count) {
  Integers sum = _mm512_setzero_si512();
  for (std::uint32_t i = 0; i < count; i += 16) {
    sum = _mm512_add_epi32(sum, _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(numbers + i))));
  }
  return _mm512_reduce_add_epi32(sum);
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

void quantize(PackedType type, const float* x, std::uint32_t n_in, std::byte* activations) {
  const ActivationLayout layout = activations_of(type);
  std::byte* scales = activations + layout.scales(n_in);
  for (std::uint32_t i = 0; i < n_in; i += layout.block, scales += sizeof(float)) {
    const float scale = quantize_scaled(x + i, layout.block, activations + i);
    std::memcpy(scales, &scale, sizeof scale);
  }
  std::byte* sums = activations + layout.sums(n_in);
  for (std::uint32_t i = 0; i < n_in; i += layout.sum_block, sums += sizeof(std::int32_t)) {
    const std::int32_t sum = sum_of(activations + i, layout.sum_block);
    const std::int32_t offset = -offset_of(type) * sum;
    const auto number = static_cast<float>(sum);
    std::memcpy(sums, type == PackedType::q4_k ? static_cast<const void*>(&number) : &offset, sizeof offset);
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
