#pragma once

#include <bit>
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

// Rounds to nearest, ties to even, as the instructions do; what is too large becomes infinite.
inline std::uint16_t float_to_half(float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return sign | 0x7e00U;
  if (magnitude >= 0x477ff000U) return sign | 0x7c00U;
  if (magnitude < 0x38800000U) {
    // Subnormal: adding 0.5 leaves a multiple of 2^-24 in the lowest bits.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U));
  }
  const std::uint32_t odd = magnitude >> 13 & 1U;
  return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000U + 0xfffU + odd) >> 13));
}

}  // namespace molly::engine
