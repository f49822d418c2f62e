#include "engine/adapters/number_format.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>

#include "engine/kernels/half.h"

namespace molly::engine {
namespace {

template <class Number>
Number load(const std::uint8_t* at) {
  Number number;
  std::memcpy(&number, at, sizeof number);
  return number;
}

template <class Number>
void store(std::byte* at, Number number) {
  std::memcpy(at, &number, sizeof number);
}

void decode_q8_0(const std::uint8_t* from, std::span<float> to) {
  for (std::size_t start = 0; start < to.size(); start += q8_0_block, from += q8_0_block_bytes) {
    const float scale = half_to_float(load<std::uint16_t>(from));
    for (std::size_t i = 0; i < q8_0_block; ++i) {
      to[start + i] = scale * static_cast<float>(static_cast<std::int8_t>(from[2 + i]));
    }
  }
}

}  // namespace

std::size_t encoded_bytes(NumberFormat format, std::size_t elements) {
  switch (format) {
    case NumberFormat::f32: return elements * 4;
    case NumberFormat::f16:
    case NumberFormat::bf16: return elements * 2;
    case NumberFormat::q8_0: assert(elements % q8_0_block == 0); return elements / q8_0_block * q8_0_block_bytes;
  }
  return 0;
}

void decode(NumberFormat format, std::span<const std::uint8_t> from, std::span<float> to) {
  assert(from.size() == encoded_bytes(format, to.size()));
  const std::uint8_t* at = from.data();
  switch (format) {
    case NumberFormat::f32:
      if (!to.empty()) std::memcpy(to.data(), at, from.size());
      return;
    case NumberFormat::f16:
      for (std::size_t i = 0; i < to.size(); ++i) to[i] = half_to_float(load<std::uint16_t>(at + 2 * i));
      return;
    case NumberFormat::bf16:
      for (std::size_t i = 0; i < to.size(); ++i) {
        to[i] = std::bit_cast<float>(std::uint32_t{load<std::uint16_t>(at + 2 * i)} << 16);
      }
      return;
    case NumberFormat::q8_0: return decode_q8_0(at, to);
  }
}

void encode_f16(std::span<const float> from, std::span<std::byte> to) {
  assert(to.size() >= encoded_bytes(NumberFormat::f16, from.size()));
  for (std::size_t i = 0; i < from.size(); ++i) store(&to[2 * i], float_to_half(from[i]));
}

void encode_q8_0(std::span<const float> from, std::span<std::byte> to) {
  assert(to.size() >= encoded_bytes(NumberFormat::q8_0, from.size()));
  std::byte* at = to.data();
  for (std::size_t start = 0; start < from.size(); start += q8_0_block, at += q8_0_block_bytes) {
    const auto block = from.subspan(start, q8_0_block);
    const float scale = largest_magnitude(block) / 127;
    const std::uint16_t stored_scale = float_to_half(scale);
    const float inverse = stored_scale == 0 ? 0 : 1 / scale;  // of a scale that small it could be infinite
    store(at, stored_scale);
    for (std::size_t i = 0; i < q8_0_block; ++i)
      store(at + 2 + i, static_cast<std::int8_t>(std::round(block[i] * inverse)));
  }
}

// Without their signs, bits are in the order of the numbers, then infinity, then NaN.
float largest_magnitude(std::span<const float> numbers) {
  std::uint32_t largest = 0;
  for (const float number : numbers) largest = std::max(largest, std::bit_cast<std::uint32_t>(number) & 0x7fffffffU);
  return std::bit_cast<float>(largest);
}

// Written with vectors: a compiler that optimises for size leaves such a loop as it is.
bool all_finite(std::span<const std::uint16_t> halves) {
  using EightHalves = std::uint16_t __attribute__((vector_size(16)));
  constexpr std::uint16_t exponent = 0x7c00;
  constexpr std::size_t width = 8;
  const EightHalves exponents = EightHalves{} + exponent;
  EightHalves found{};
  std::size_t i = 0;
  for (; i + width <= halves.size(); i += width) {
    EightHalves eight;
    std::memcpy(&eight, &halves[i], sizeof eight);
    found |= reinterpret_cast<EightHalves>((eight & exponents) == exponents);
  }
  bool is_finite = true;
  for (std::size_t lane = 0; lane < width; ++lane) is_finite = is_finite && found[lane] == 0;
  for (; i < halves.size(); ++i) is_finite = is_finite && (halves[i] & exponent) != exponent;
  return is_finite;
}

}  // namespace molly::engine
