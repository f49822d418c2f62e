#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

// Number formats of adapter files and of factors in the pool, to and from F32.
namespace molly::engine {

// q8_0: blocks of 32 numbers, each an F16 scale and 32 signed bytes.
enum class NumberFormat : std::uint8_t { f32, f16, bf16, q8_0 };

inline constexpr std::size_t q8_0_block = 32;
inline constexpr std::size_t q8_0_block_bytes = 34;

// `elements` is a multiple of 32 for q8_0.
std::size_t encoded_bytes(NumberFormat format, std::size_t elements);

// `from` holds encoded_bytes(format, to.size()) bytes, at any alignment, little-endian.
void decode(NumberFormat format, std::span<const std::uint8_t> from, std::span<float> to);

// `to` has room for encoded_bytes(f16, from.size()) bytes.
void encode_f16(std::span<const float> from, std::span<std::byte> to);
// As ggml's quantize_row_q8_0_ref: the scale is max|x| / 127, numbers round to nearest. from.size() is a multiple
// of 32.
void encode_q8_0(std::span<const float> from, std::span<std::byte> to);

// max|x|; of no numbers 0, infinity when there is an infinity, NaN when there is a NaN.
float largest_magnitude(std::span<const float> numbers);
// No infinity and no NaN among numbers in half precision.
bool all_finite(std::span<const std::uint16_t> halves);

}  // namespace molly::engine
