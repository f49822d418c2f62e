#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

// IEEE 754 half precision for processors without conversion instructions.
namespace molly::engine {

// Exact. The exponent is moved into place with a multiplication, which also normalises subnormal numbers.
inline float half_to_float(std::uint16_t half) {
  constexpr float rebias = 0x1p112F;
  const auto bits = static_cast<std::uint32_t>(half);
  const float magnitude = std::bit_cast<float>((bits & 0x7fffU) << 13) * rebias;
  const bool infinite_or_nan = (bits & 0x7c00U) == 0x7c00U;
  const std::uint32_t exponent = infinite_or_nan ? 0x7f800000U : 0U;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | exponent | (bits & 0x8000U) << 16);
}

// Rounds to nearest, ties to even, as the instructions do; what is too large becomes infinite. Without branches, so
// that loops over it are vectorised. The float adder does the rounding: a number whose lowest bit weighs as much as the
// half's is added to it (Maratyszcza's FP16 library, as ggml has it).
inline std::uint16_t float_to_half(float number) {
  constexpr float to_infinity = 0x1.0p+112F;
  constexpr float back = 0x1.0p-110F;
  const auto bits = std::bit_cast<std::uint32_t>(number);
  const std::uint32_t sign = (bits >> 16) & 0x8000;
  const std::uint32_t without_sign = bits << 1;
  const std::uint32_t exponent = std::max(without_sign & 0xff000000U, 0x71000000U);
  const float rounded = std::bit_cast<float>((exponent >> 1) + 0x07800000U) + (std::fabs(number) * to_infinity) * back;
  const auto rounded_bits = std::bit_cast<std::uint32_t>(rounded);
  const std::uint32_t magnitude = ((rounded_bits >> 13) & 0x7c00) + (rounded_bits & 0x0fff);
  return static_cast<std::uint16_t>(sign | (without_sign > 0xff000000U ? 0x7e00U : magnitude));
}

}  // namespace molly::engine
