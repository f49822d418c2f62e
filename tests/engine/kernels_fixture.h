#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "engine/kernels/half.h"
#include "engine/kernels/isa.h"

namespace molly::engine {

inline std::vector<Isa> supported_isas() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512, Isa::neon}) {
    if (is_supported(isa)) isas.push_back(isa);
  }
  return isas;
}

class Random {
 public:
  explicit Random(std::uint32_t seed) : engine_(seed) {}
  std::uint32_t whole(std::uint32_t least, std::uint32_t most) {
    return std::uniform_int_distribution(least, most)(engine_);
  }
  float normal() { return std::normal_distribution<float>()(engine_); }
  template <typename Choices>
  auto one_of(const Choices& choices) {
    return choices[whole(0, static_cast<std::uint32_t>(std::size(choices)) - 1)];
  }
  std::vector<float> normals(std::size_t count) {
    std::vector<float> numbers(count);
    for (float& each : numbers) each = normal();
    return numbers;
  }
  std::minstd_rand& engine() { return engine_; }

 private:
  std::minstd_rand engine_;
};

// Written from the formats' definitions, number by number, and apart from the kernels.
inline double half_at(const std::byte* row, std::size_t index) {
  std::uint16_t half;
  std::memcpy(&half, row + index * 2, sizeof half);
  const int exponent = half >> 10 & 31;
  const double fraction = half & 1023;
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

inline double q8_at(const std::byte* row, std::size_t index) {
  const std::byte* block = row + index / 32 * 34;
  return half_at(block, 0) * static_cast<std::int8_t>(block[2 + index % 32]);
}

}  // namespace molly::engine
