#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/kernels/inline.h"

namespace molly::engine {
namespace {

struct Neon {
  using Register = float32x4_t;
  static constexpr int width = 4;
  static constexpr int registers = 32;

  MOLLY_INLINE static Register zero() { return vdupq_n_f32(0); }
  MOLLY_INLINE static Register broadcast(float number) { return vdupq_n_f32(number); }
  MOLLY_INLINE static Register load(const float* from) { return vld1q_f32(from); }
  MOLLY_INLINE static void store(float* to, Register r) { vst1q_f32(to, r); }
  MOLLY_INLINE static Register add(Register a, Register b) { return vaddq_f32(a, b); }
  MOLLY_INLINE static Register multiply(Register a, Register b) { return vmulq_f32(a, b); }
  MOLLY_INLINE static Register multiply_add(Register a, Register b, Register c) { return vfmaq_f32(c, a, b); }
  MOLLY_INLINE static Register larger(Register a, Register b) { return vmaxq_f32(a, b); }
  MOLLY_INLINE static Register magnitude(Register r) { return vabsq_f32(r); }
  MOLLY_INLINE static float sum(Register r) { return vaddvq_f32(r); }
  MOLLY_INLINE static float largest(Register r) { return vmaxvq_f32(r); }

  MOLLY_INLINE static Register load_half(const std::byte* from) {
    uint16x4_t halves;
    std::memcpy(&halves, from, sizeof halves);
    return vcvt_f32_f16(vreinterpret_f16_u16(halves));
  }
  MOLLY_INLINE static Register broadcast_half(const std::byte* from) {
    std::uint16_t half;
    std::memcpy(&half, from, sizeof half);
    return vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(half)));
  }
  MOLLY_INLINE static void store_half(std::byte* to, Register r) {
    const uint16x4_t halves = vreinterpret_u16_f16(vcvt_f16_f32(r));
    std::memcpy(to, &halves, sizeof halves);
  }
  MOLLY_INLINE static Register load_int8(const std::byte* from) {
    std::uint32_t bytes;
    std::memcpy(&bytes, from, sizeof bytes);
    const int16x8_t words = vmovl_s8(vreinterpret_s8_u32(vdup_n_u32(bytes)));
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(words)));
  }
  MOLLY_INLINE static void store_int8(std::byte* to, Register r) {
    const int16x4_t words = vqmovn_s32(vcvtnq_s32_f32(r));
    const int8x8_t bytes = vqmovn_s16(vcombine_s16(words, words));
    std::memcpy(to, &bytes, width);
  }

  MOLLY_INLINE static Register keep_first(Register r, int count, float fill) {
    const int32x4_t lane = {0, 1, 2, 3};
    return vbslq_f32(vcltq_s32(lane, vdupq_n_s32(count)), r, vdupq_n_f32(fill));
  }
  MOLLY_INLINE static Register round(Register r) { return vrndnq_f32(r); }
  MOLLY_INLINE static Register times_power_of_two(Register r, Register power) {
    const int32x4_t exponent = vaddq_s32(vcvtq_s32_f32(power), vdupq_n_s32(127));
    return vmulq_f32(r, vreinterpretq_f32_s32(vshlq_n_s32(exponent, 23)));
  }

  MOLLY_INLINE static void transpose(Register (&rows)[width]) {
    const float32x4x2_t first = vtrnq_f32(rows[0], rows[1]);
    const float32x4x2_t second = vtrnq_f32(rows[2], rows[3]);
    rows[0] = vcombine_f32(vget_low_f32(first.val[0]), vget_low_f32(second.val[0]));
    rows[1] = vcombine_f32(vget_low_f32(first.val[1]), vget_low_f32(second.val[1]));
    rows[2] = vcombine_f32(vget_high_f32(first.val[0]), vget_high_f32(second.val[0]));
    rows[3] = vcombine_f32(vget_high_f32(first.val[1]), vget_high_f32(second.val[1]));
  }
};

}  // namespace
}  // namespace molly::engine
