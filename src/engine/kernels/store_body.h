#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/kernels/attention.h"
#include "engine/kernels/half.h"
#include "engine/kernels/inline.h"
#include "engine/kernels/row_formats.h"

namespace molly::engine {
namespace {

// As ggml's quantize_row_q8_0: the scale makes the largest magnitude 127.
template <typename Vector>
void store_q8_block(const float* source, std::byte* block) {
  auto largest = Vector::zero();
  for (std::size_t i = 0; i < block_numbers; i += Vector::width) {
    largest = Vector::larger(largest, Vector::magnitude(Vector::load(source + i)));
  }
  const float scale = Vector::largest(largest) / 127;
  const auto inverse = Vector::broadcast(scale > 0 ? 1 / scale : 0);
  const std::uint16_t half = float_to_half(scale);
  std::memcpy(block, &half, sizeof half);
  for (std::size_t i = 0; i < block_numbers; i += Vector::width) {
    Vector::store_int8(block + half_bytes + i, Vector::multiply(Vector::load(source + i), inverse));
  }
}

template <typename Vector>
void store_row(const float* source, std::size_t numbers, KvType type, std::byte* row) {
  if (type == KvType::q8_0) {
    for (std::size_t i = 0; i < numbers; i += block_numbers) {
      store_q8_block<Vector>(source + i, row + i / block_numbers * q8_block_bytes);
    }
    return;
  }
  for (std::size_t i = 0; i < numbers; i += Vector::width) {
    Vector::store_half(row + i * half_bytes, Vector::load(source + i));
  }
}

}  // namespace
}  // namespace molly::engine
