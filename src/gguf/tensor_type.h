#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace molly::gguf {

// ggml_type numbers as they stand in files; the holes are types that were removed.
enum class TensorType : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q8_1 = 9,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  q8_k = 15,
  iq2_xxs = 16,
  iq2_xs = 17,
  iq3_xxs = 18,
  iq1_s = 19,
  iq4_nl = 20,
  iq3_s = 21,
  iq2_s = 22,
  iq4_xs = 23,
  i8 = 24,
  i16 = 25,
  i32 = 26,
  i64 = 27,
  f64 = 28,
  iq1_m = 29,
  bf16 = 30,
  tq1_0 = 34,
  tq2_0 = 35,
  mxfp4 = 39,
  nvfp4 = 40,
};

// A row is made of blocks of `elements` numbers in `bytes` bytes.
struct TypeLayout {
  TensorType type;
  std::string_view name;  // "Q4_K"
  std::uint32_t elements;
  std::uint32_t bytes;
};

// Nothing for a number that is no known type.
std::optional<TypeLayout> type_layout(std::uint32_t number);
inline std::optional<TypeLayout> type_layout(TensorType type) { return type_layout(static_cast<std::uint32_t>(type)); }

}  // namespace molly::gguf
