#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/kernels/inline.h"

namespace molly::engine {
namespace {

// Included between the pragmas of kernels_avx512.cc only.
struct Avx512 {
  using Register = __m512;
  static constexpr int width = 16;
  static constexpr int registers = 32;

  MOLLY_INLINE static Register zero() { return _mm512_setzero_ps(); }
  MOLLY_INLINE static Register broadcast(float number) { return _mm512_set1_ps(number); }
  MOLLY_INLINE static Register load(const float* from) { return _mm512_loadu_ps(from); }
  MOLLY_INLINE static void store(float* to, Register r) { _mm512_storeu_ps(to, r); }
  MOLLY_INLINE static Register add(Register a, Register b) { return _mm512_add_ps(a, b); }
  MOLLY_INLINE static Register multiply(Register a, Register b) { return _mm512_mul_ps(a, b); }
  MOLLY_INLINE static Register multiply_add(Register a, Register b, Register c) { return _mm512_fmadd_ps(a, b, c); }
  MOLLY_INLINE static Register larger(Register a, Register b) { return _mm512_max_ps(a, b); }
  MOLLY_INLINE static Register magnitude(Register r) { return _mm512_abs_ps(r); }
  MOLLY_INLINE static float sum(Register r) { return _mm512_reduce_add_ps(r); }
  MOLLY_INLINE static float largest(Register r) { return _mm512_reduce_max_ps(r); }

  MOLLY_INLINE static Register load_half(const std::byte* from) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  MOLLY_INLINE static Register broadcast_half(const std::byte* from) {
    std::int16_t half;
    std::memcpy(&half, from, sizeof half);
    return _mm512_cvtph_ps(_mm256_set1_epi16(half));
  }
  MOLLY_INLINE static void store_half(std::byte* to, Register r) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtps_ph(r, _MM_FROUND_TO_NEAREST_INT));
  }
  MOLLY_INLINE static Register load_int8(const std::byte* from) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
  }
  MOLLY_INLINE static void store_int8(std::byte* to, Register r) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(r)));
  }

  MOLLY_INLINE static Register keep_first(Register r, int count, float fill) {
    return _mm512_mask_mov_ps(_mm512_set1_ps(fill), static_cast<__mmask16>((1U << count) - 1), r);
  }
  MOLLY_INLINE static Register round(Register r) { return _mm512_roundscale_ps(r, _MM_FROUND_TO_NEAREST_INT); }
  MOLLY_INLINE static Register times_power_of_two(Register r, Register power) { return _mm512_scalef_ps(r, power); }

  MOLLY_INLINE static void transpose(Register (&rows)[width]) {
    Register pairs[width];
    MOLLY_UNROLL
    for (int i = 0; i < 16; i += 2) {
      pairs[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
      pairs[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
    }
    Register quads[width];  // quads[4 i + j]: column 4 lane + j of rows 4 i to 4 i + 3
    MOLLY_UNROLL
    for (int i = 0; i < 16; i += 4) {
      quads[i] = shuffle_pairs<0x00>(pairs[i], pairs[i + 2]);
      quads[i + 1] = shuffle_pairs<0xff>(pairs[i], pairs[i + 2]);
      quads[i + 2] = shuffle_pairs<0x00>(pairs[i + 1], pairs[i + 3]);
      quads[i + 3] = shuffle_pairs<0xff>(pairs[i + 1], pairs[i + 3]);
    }
    MOLLY_UNROLL
    for (int j = 0; j < 4; ++j) {
      const Register even_low = _mm512_shuffle_f32x4(quads[j], quads[4 + j], 0x88);
      const Register odd_low = _mm512_shuffle_f32x4(quads[j], quads[4 + j], 0xdd);
      const Register even_high = _mm512_shuffle_f32x4(quads[8 + j], quads[12 + j], 0x88);
      const Register odd_high = _mm512_shuffle_f32x4(quads[8 + j], quads[12 + j], 0xdd);
      rows[j] = _mm512_shuffle_f32x4(even_low, even_high, 0x88);
      rows[8 + j] = _mm512_shuffle_f32x4(even_low, even_high, 0xdd);
      rows[4 + j] = _mm512_shuffle_f32x4(odd_low, odd_high, 0x88);
      rows[12 + j] = _mm512_shuffle_f32x4(odd_low, odd_high, 0xdd);
    }
  }

 private:
  template <int selection>
  MOLLY_INLINE static Register shuffle_pairs(Register a, Register b) {
    return _mm512_castpd_ps(_mm512_shuffle_pd(_mm512_castps_pd(a), _mm512_castps_pd(b), selection));
  }
};

}  // namespace
}  // namespace molly::engine
