#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/kernels/inline.h"

namespace molly::engine {
namespace {

// Included between the pragmas of kernels_avx2.cc only.
struct Avx2 {
  using Register = __m256;
  static constexpr int width = 8;
  static constexpr int registers = 16;

  MOLLY_INLINE static Register zero() { return _mm256_setzero_ps(); }
  MOLLY_INLINE static Register broadcast(float number) { return _mm256_set1_ps(number); }
  MOLLY_INLINE static Register load(const float* from) { return _mm256_loadu_ps(from); }
  MOLLY_INLINE static void store(float* to, Register r) { _mm256_storeu_ps(to, r); }
  MOLLY_INLINE static Register add(Register a, Register b) { return _mm256_add_ps(a, b); }
  MOLLY_INLINE static Register multiply(Register a, Register b) { return _mm256_mul_ps(a, b); }
  MOLLY_INLINE static Register multiply_add(Register a, Register b, Register c) { return _mm256_fmadd_ps(a, b, c); }
  MOLLY_INLINE static Register larger(Register a, Register b) { return _mm256_max_ps(a, b); }
  MOLLY_INLINE static Register magnitude(Register r) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), r); }
  MOLLY_INLINE static float sum(Register r) {
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(r), _mm256_extractf128_ps(r, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
  }
  MOLLY_INLINE static float largest(Register r) {
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(r), _mm256_extractf128_ps(r, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
  }

  MOLLY_INLINE static Register load_half(const std::byte* from) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  MOLLY_INLINE static Register broadcast_half(const std::byte* from) {
    std::int16_t half;
    std::memcpy(&half, from, sizeof half);
    return _mm256_cvtph_ps(_mm_set1_epi16(half));
  }
  MOLLY_INLINE static void store_half(std::byte* to, Register r) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(r, _MM_FROUND_TO_NEAREST_INT));
  }
  MOLLY_INLINE static Register load_int8(const std::byte* from) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
  }
  MOLLY_INLINE static void store_int8(std::byte* to, Register r) {
    const __m256i wide = _mm256_cvtps_epi32(r);
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packs_epi16(words, words));
  }

  MOLLY_INLINE static Register keep_first(Register r, int count, float fill) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i kept = _mm256_cmpgt_epi32(_mm256_set1_epi32(count), lane);
    return _mm256_blendv_ps(_mm256_set1_ps(fill), r, _mm256_castsi256_ps(kept));
  }
  MOLLY_INLINE static Register round(Register r) {
    return _mm256_round_ps(r, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  MOLLY_INLINE static Register times_power_of_two(Register r, Register power) {
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(power), _mm256_set1_epi32(127));
    return _mm256_mul_ps(r, _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)));
  }

  MOLLY_INLINE static void transpose(Register (&rows)[width]) {
    Register quads[width];  // quads[4 i + j]: column 4 lane + j of rows 4 i to 4 i + 3
    MOLLY_UNROLL
    for (int i = 0; i < 8; i += 4) {
      const Register low = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
      const Register high = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
      const Register next_low = _mm256_unpacklo_ps(rows[i + 2], rows[i + 3]);
      const Register next_high = _mm256_unpackhi_ps(rows[i + 2], rows[i + 3]);
      quads[i] = _mm256_shuffle_ps(low, next_low, 0x44);
      quads[i + 1] = _mm256_shuffle_ps(low, next_low, 0xee);
      quads[i + 2] = _mm256_shuffle_ps(high, next_high, 0x44);
      quads[i + 3] = _mm256_shuffle_ps(high, next_high, 0xee);
    }
    MOLLY_UNROLL
    for (int j = 0; j < 4; ++j) {
      rows[j] = _mm256_permute2f128_ps(quads[j], quads[4 + j], 0x20);
      rows[4 + j] = _mm256_permute2f128_ps(quads[j], quads[4 + j], 0x31);
    }
  }
};

}  // namespace
}  // namespace molly::engine
