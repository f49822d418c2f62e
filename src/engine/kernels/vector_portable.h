#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/kernels/half.h"
#include "engine/kernels/inline.h"

namespace molly::engine {
namespace {

// Four floats in the vectors that GCC and clang offer everywhere: SSE2 on the x86-64 baseline, scalars where there is
// nothing better.
struct Portable {
  using Register = float __attribute__((vector_size(16)));
  using Integers = std::int32_t __attribute__((vector_size(16)));
  static constexpr int width = 4;
  static constexpr int registers = 16;

  MOLLY_INLINE static Register zero() { return Register{}; }
  MOLLY_INLINE static Register broadcast(float number) { return Register{number, number, number, number}; }
  MOLLY_INLINE static Register load(const float* from) {
    Register r;
    std::memcpy(&r, from, sizeof r);
    return r;
  }
  MOLLY_INLINE static void store(float* to, Register r) { std::memcpy(to, &r, sizeof r); }
  MOLLY_INLINE static Register add(Register a, Register b) { return a + b; }
  MOLLY_INLINE static Register multiply(Register a, Register b) { return a * b; }
  MOLLY_INLINE static Register multiply_add(Register a, Register b, Register c) { return a * b + c; }
  MOLLY_INLINE static Register larger(Register a, Register b) { return select(a > b, a, b); }
  MOLLY_INLINE static Register magnitude(Register r) {
    const Integers all_but_sign = {0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff};
    return std::bit_cast<Register>(std::bit_cast<Integers>(r) & all_but_sign);
  }
  MOLLY_INLINE static float sum(Register r) { return (r[0] + r[2]) + (r[1] + r[3]); }
  MOLLY_INLINE static float largest(Register r) {
    const float even = r[0] > r[2] ? r[0] : r[2];
    const float odd = r[1] > r[3] ? r[1] : r[3];
    return even > odd ? even : odd;
  }

  MOLLY_INLINE static Register load_half(const std::byte* from) {
    std::array<std::uint16_t, width> halves;
    std::memcpy(&halves, from, sizeof halves);
    const Integers bits = {halves[0], halves[1], halves[2], halves[3]};
    const Integers magnitude_bits = (bits & 0x7fff) << 13;
    const Register rebiased = std::bit_cast<Register>(magnitude_bits) * 0x1p112F;
    const Integers infinite_or_nan = (bits & 0x7c00) == 0x7c00;
    return std::bit_cast<Register>(std::bit_cast<Integers>(rebiased) | (infinite_or_nan & 0x7f800000) |
                                   (bits & 0x8000) << 16);
  }
  MOLLY_INLINE static Register broadcast_half(const std::byte* from) {
    std::uint16_t half;
    std::memcpy(&half, from, sizeof half);
    return broadcast(half_to_float(half));
  }
  MOLLY_INLINE static void store_half(std::byte* to, Register r) {
    const std::array<std::uint16_t, width> halves = {float_to_half(r[0]), float_to_half(r[1]), float_to_half(r[2]),
                                                     float_to_half(r[3])};
    std::memcpy(to, &halves, sizeof halves);
  }
  MOLLY_INLINE static Register load_int8(const std::byte* from) {
    std::array<std::int8_t, width> bytes;
    std::memcpy(&bytes, from, sizeof bytes);
    return __builtin_convertvector(Integers{bytes[0], bytes[1], bytes[2], bytes[3]}, Register);
  }
  MOLLY_INLINE static void store_int8(std::byte* to, Register r) {
    const Integers whole = __builtin_convertvector(round(r), Integers);
    MOLLY_UNROLL
    for (int i = 0; i < width; ++i) to[i] = static_cast<std::byte>(whole[i]);
  }

  MOLLY_INLINE static Register keep_first(Register r, int count, float fill) {
    return select(Integers{0, 1, 2, 3} < count, r, broadcast(fill));
  }
  // Adding 1.5 * 2^23 leaves no room for a fraction. For magnitudes below 2^22.
  MOLLY_INLINE static Register round(Register r) {
    constexpr float shift = 0x1.8p23F;
    return (r + shift) - shift;
  }
  MOLLY_INLINE static Register times_power_of_two(Register r, Register power) {
    const Integers exponent = __builtin_convertvector(power, Integers) + 127;
    return r * std::bit_cast<Register>(exponent << 23);
  }

  MOLLY_INLINE static void transpose(Register (&rows)[width]) {
    const Register low = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5);
    const Register high = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
    const Register next_low = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5);
    const Register next_high = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
    rows[0] = __builtin_shufflevector(low, next_low, 0, 1, 4, 5);
    rows[1] = __builtin_shufflevector(low, next_low, 2, 3, 6, 7);
    rows[2] = __builtin_shufflevector(high, next_high, 0, 1, 4, 5);
    rows[3] = __builtin_shufflevector(high, next_high, 2, 3, 6, 7);
  }

 private:
  MOLLY_INLINE static Register select(Integers mask, Register a, Register b) {
    return std::bit_cast<Register>((mask & std::bit_cast<Integers>(a)) | (~mask & std::bit_cast<Integers>(b)));
  }
};

}  // namespace
}  // namespace molly::engine
