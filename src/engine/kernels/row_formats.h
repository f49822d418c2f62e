#pragma once

#include <cstddef>
#include <type_traits>

#include "engine/kernels/inline.h"

// How a register of numbers comes out of a stored row, for any of the Vector types. Included between the pragmas of an
// instruction set's file only, after its vector.
namespace molly::engine {
namespace {

// A Q8_0 block is a multiple of every register's width, so loops over rows step by it whatever the format.
inline constexpr std::size_t block_numbers = 32;
inline constexpr std::size_t half_bytes = 2;
inline constexpr std::size_t q8_block_bytes = half_bytes + block_numbers;

template <typename Vector>
struct HalfRow {
  static constexpr std::size_t block_bytes = block_numbers * half_bytes;
  MOLLY_INLINE static auto at(const std::byte* row, std::size_t column) {
    return Vector::load_half(row + column * half_bytes);
  }
};

template <typename Vector>
struct Q8Row {
  static constexpr std::size_t block_bytes = q8_block_bytes;
  MOLLY_INLINE static auto at(const std::byte* row, std::size_t column) {
    const std::byte* block = row + column / block_numbers * q8_block_bytes;
    const auto scale = Vector::broadcast_half(block);
    return Vector::multiply(Vector::load_int8(block + half_bytes + column % block_numbers), scale);
  }
};

}  // namespace
}  // namespace molly::engine
