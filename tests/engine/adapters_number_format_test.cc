#include "engine/adapters/number_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "engine/kernels/half.h"

namespace molly::engine {
namespace {

float exact_half(std::uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const float mantissa = static_cast<float>(half & 1023);
  const float magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

bool is_finite_half(std::uint32_t half) { return (half & 0x7c00) != 0x7c00; }

TEST(NumberFormat, every_half_is_read_exactly_and_written_back) {
  for (std::uint32_t half = 0; half < 0x10000; ++half) {
    const float value = half_to_float(static_cast<std::uint16_t>(half));
    if (!is_finite_half(half)) {
      EXPECT_FALSE(std::isfinite(value));
      continue;
    }
    ASSERT_EQ(value, exact_half(static_cast<std::uint16_t>(half))) << half;
    ASSERT_EQ(std::signbit(value), (half & 0x8000) != 0);
    ASSERT_EQ(float_to_half(value), half);
  }
}

TEST(NumberFormat, rounds_to_the_nearest_half_and_ties_to_even) {
  for (std::uint16_t half = 0; half < 0x7bff; ++half) {
    const float low = exact_half(half);
    const float high = exact_half(static_cast<std::uint16_t>(half + 1));
    const float middle = low + (high - low) / 2;
    const auto even = static_cast<std::uint16_t>(half + (half & 1));
    ASSERT_EQ(float_to_half(middle), even) << half;
    ASSERT_EQ(float_to_half(std::nextafter(middle, low)), half);
    ASSERT_EQ(float_to_half(std::nextafter(middle, high)), half + 1);
    ASSERT_EQ(float_to_half(-middle), even | 0x8000);
  }
  EXPECT_EQ(float_to_half(65519), 0x7bff);
  EXPECT_EQ(float_to_half(65520), 0x7c00);
  EXPECT_EQ(float_to_half(std::numeric_limits<float>::infinity()), 0x7c00);
  EXPECT_EQ(float_to_half(std::numeric_limits<float>::quiet_NaN()) & 0x7e00, 0x7e00);
}

TEST(NumberFormat, quantized_numbers_are_within_half_a_step) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(96);
  for (float& number : numbers) number = normal(random);
  std::vector<std::byte> bytes(encoded_bytes(NumberFormat::q8_0, numbers.size()));
  encode_q8_0(numbers, bytes);
  std::vector<float> back(numbers.size());
  decode(NumberFormat::q8_0, {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, back);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const float largest = largest_magnitude(std::span(numbers).subspan(i / 32 * 32, 32));
    // Half a step, and what rounding the scale to half precision adds at the far end.
    EXPECT_NEAR(back[i], numbers[i], largest / 127 * 0.5F + largest * 0x1p-11F) << i;
  }
}

TEST(NumberFormat, a_block_of_zeros_stays_zero) {
  std::vector<std::byte> bytes(q8_0_block_bytes, std::byte{1});
  encode_q8_0(std::vector<float>(32), bytes);
  EXPECT_EQ(bytes, std::vector<std::byte>(q8_0_block_bytes));
}

TEST(NumberFormat, a_block_of_numbers_too_small_for_its_scale_becomes_zero) {
  std::vector<float> numbers(32);
  numbers[3] = std::numeric_limits<float>::denorm_min();
  numbers[4] = 1e-7F;
  std::vector<std::byte> bytes(q8_0_block_bytes, std::byte{1});
  encode_q8_0(numbers, bytes);
  EXPECT_EQ(bytes, std::vector<std::byte>(q8_0_block_bytes));
}

TEST(NumberFormat, quantizes_as_ggml_does) {
  std::vector<float> numbers(32);
  for (int i = 0; i < 32; ++i) numbers[static_cast<std::size_t>(i)] = static_cast<float>(i - 16) * 127 / 16;
  std::vector<std::byte> bytes(q8_0_block_bytes);
  encode_q8_0(numbers, bytes);
  EXPECT_EQ(bytes[0], std::byte{0x00});
  EXPECT_EQ(bytes[1], std::byte{0x3c}) << "the scale is 127 / 127";
  EXPECT_EQ(static_cast<int>(static_cast<std::int8_t>(bytes[2])), -127);
  EXPECT_EQ(static_cast<int>(static_cast<std::int8_t>(bytes[2 + 15])), -8) << "-7.94";
  EXPECT_EQ(static_cast<int>(static_cast<std::int8_t>(bytes[2 + 20])), 32) << "31.75";
}

TEST(NumberFormat, finds_the_largest_magnitude_and_numbers_that_are_not_finite) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  const auto largest = [](const std::vector<float>& numbers) { return largest_magnitude(numbers); };
  EXPECT_EQ(largest({}), 0);
  EXPECT_EQ(largest({0, -0.0F, 2, -3}), 3);
  EXPECT_EQ(largest({0, std::numeric_limits<float>::lowest()}), std::numeric_limits<float>::max());
  EXPECT_EQ(largest({0, -infinity, 5}), infinity);
  EXPECT_TRUE(std::isnan(largest({nan, 1, infinity})));
  EXPECT_TRUE(std::isnan(largest({1, -nan})));
  const auto finite = [](std::size_t count, std::size_t place, float number) {
    std::vector<std::uint16_t> halves(count, float_to_half(-65504));
    halves[place] = float_to_half(number);
    return all_finite(halves);
  };
  EXPECT_TRUE(all_finite({}));
  for (const std::size_t place : {0U, 7U, 8U, 15U, 16U, 18U}) {
    EXPECT_TRUE(finite(19, place, 1));
    EXPECT_FALSE(finite(19, place, infinity));
    EXPECT_FALSE(finite(19, place, -infinity));
    EXPECT_FALSE(finite(19, place, nan));
  }
}

}  // namespace
}  // namespace molly::engine
