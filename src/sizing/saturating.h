#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

// Sums and products that stay at a largest value instead of wrapping: a hostile header gives a huge need, not a small
// one.
namespace molly::sizing {

inline constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max() / 16;

constexpr std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? largest : std::min(product, largest);
}

constexpr std::uint64_t plus(std::uint64_t a, std::uint64_t b) {
  return std::min(largest, std::min(a, largest) + std::min(b, largest));
}

constexpr std::uint64_t minus(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

constexpr std::uint64_t divided_up(std::uint64_t a, std::uint64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

constexpr std::uint64_t rounded_up(std::uint64_t a, std::uint64_t step) { return times(divided_up(a, step), step); }

}  // namespace molly::sizing
