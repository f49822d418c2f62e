#include "gguf/tensor_type.h"

#include <algorithm>
#include <array>

namespace molly::gguf {
namespace {

using enum TensorType;

// Sorted by number.
constexpr std::array layouts{
    TypeLayout{f32, "F32", 1, 4},
    TypeLayout{f16, "F16", 1, 2},
    TypeLayout{q4_0, "Q4_0", 32, 18},
    TypeLayout{q4_1, "Q4_1", 32, 20},
    TypeLayout{q5_0, "Q5_0", 32, 22},
    TypeLayout{q5_1, "Q5_1", 32, 24},
    TypeLayout{q8_0, "Q8_0", 32, 34},
    TypeLayout{q8_1, "Q8_1", 32, 36},
    TypeLayout{q2_k, "Q2_K", 256, 84},
    TypeLayout{q3_k, "Q3_K", 256, 110},
    TypeLayout{q4_k, "Q4_K", 256, 144},
    TypeLayout{q5_k, "Q5_K", 256, 176},
    TypeLayout{q6_k, "Q6_K", 256, 210},
    TypeLayout{q8_k, "Q8_K", 256, 292},
    TypeLayout{iq2_xxs, "IQ2_XXS", 256, 66},
    TypeLayout{iq2_xs, "IQ2_XS", 256, 74},
    TypeLayout{iq3_xxs, "IQ3_XXS", 256, 98},
    TypeLayout{iq1_s, "IQ1_S", 256, 50},
    TypeLayout{iq4_nl, "IQ4_NL", 32, 18},
    TypeLayout{iq3_s, "IQ3_S", 256, 110},
    TypeLayout{iq2_s, "IQ2_S", 256, 82},
    TypeLayout{iq4_xs, "IQ4_XS", 256, 136},
    TypeLayout{i8, "I8", 1, 1},
    TypeLayout{i16, "I16", 1, 2},
    TypeLayout{i32, "I32", 1, 4},
    TypeLayout{i64, "I64", 1, 8},
    TypeLayout{f64, "F64", 1, 8},
    TypeLayout{iq1_m, "IQ1_M", 256, 56},
    TypeLayout{bf16, "BF16", 1, 2},
    TypeLayout{tq1_0, "TQ1_0", 256, 54},
    TypeLayout{tq2_0, "TQ2_0", 256, 66},
    TypeLayout{mxfp4, "MXFP4", 32, 17},
    TypeLayout{nvfp4, "NVFP4", 64, 36},
};

constexpr std::uint32_t number_of(const TypeLayout& layout) { return static_cast<std::uint32_t>(layout.type); }
static_assert(std::ranges::is_sorted(layouts, {}, number_of));

}  // namespace

std::optional<TypeLayout> type_layout(std::uint32_t number) {
  const auto found = std::ranges::lower_bound(layouts, number, {}, number_of);
  if (found == layouts.end() || number_of(*found) != number) return std::nullopt;
  return *found;
}

}  // namespace molly::gguf
