#include <cmath>
#include <cstring>
#include <span>

#include "base/os/file.h"
#include "engine/adapters/factor_pairs.h"
#include "gguf/tensor_type.h"
#include "training/adapter/adapter_files.h"

// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, version 3, little-endian.
namespace molly::training {
namespace {

constexpr std::uint32_t type_f32 = 6;  // of metadata values
constexpr std::uint32_t type_string = 8;
constexpr std::size_t alignment = 32;
constexpr float largest_half = 65504;

struct Matrix {
  std::string name;
  std::uint64_t columns = 0;
  std::uint64_t rows = 0;
  const std::vector<float>* numbers = nullptr;
};

class Writer {
 public:
  template <class Number>
  Writer& number(Number value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    bytes_.append(bytes, sizeof value);
    return *this;
  }
  Writer& bytes(std::string_view text) { return bytes_ += text, *this; }
  Writer& string(std::string_view text) { return number<std::uint64_t>(text.size()).bytes(text); }
  Writer& string_entry(std::string_view key, std::string_view text) {
    return string(key).number(type_string).string(text);
  }
  Writer& align() { return bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment, '\0'), *this; }
  void numbers(const std::vector<float>& values, FactorPrecision precision) {
    const std::size_t first = bytes_.size();
    bytes_.resize(first + values.size() * (precision == FactorPrecision::f32 ? 4 : 2));
    const auto into = std::as_writable_bytes(std::span(bytes_)).subspan(first);
    if (precision == FactorPrecision::f16) return engine::encode_f16(values, into);
    std::memcpy(into.data(), values.data(), into.size());
  }
  std::string_view text() const { return bytes_; }

 private:
  std::string bytes_;
};

std::vector<Matrix> matrices_of(const LoraWeights& weights) {
  std::vector<Matrix> out;
  for (const LoraFactor& one : weights.factors) {
    const std::string name = engine::name_of(one.layer, one.projection) + ".weight.";
    out.push_back({name + "lora_a", one.n_in, one.rank, &one.a});
    out.push_back({name + "lora_b", one.rank, one.n_out, &one.b});
  }
  return out;
}

void write_metadata(Writer& file, const LoraWeights& weights, const engine::BaseShape& base, std::size_t tensors) {
  const bool has_base = !weights.base_name.empty();
  file.bytes("GGUF").number<std::uint32_t>(3).number<std::uint64_t>(tensors);
  file.number<std::uint64_t>(has_base ? 7 : 5);
  file.string_entry("general.type", "adapter").string_entry("general.architecture", base.architecture);
  file.string_entry("general.name", weights.name);
  if (has_base) {
    file.string("general.base_model.count").number<std::uint32_t>(4).number<std::uint32_t>(1);
    file.string_entry("general.base_model.0.name", weights.base_name);
  }
  file.string_entry("adapter.type", "lora");
  file.string("adapter.lora.alpha").number(type_f32).number(weights.alpha);
}

void write_tensors(Writer& file, const std::vector<Matrix>& matrices, FactorPrecision precision) {
  const bool f32 = precision == FactorPrecision::f32;
  const auto type = static_cast<std::uint32_t>(f32 ? gguf::TensorType::f32 : gguf::TensorType::f16);
  std::uint64_t offset = 0;
  for (const Matrix& one : matrices) {
    file.string(one.name).number<std::uint32_t>(2).number(one.columns).number(one.rows).number(type).number(offset);
    offset += (one.columns * one.rows * (f32 ? 4 : 2) + alignment - 1) / alignment * alignment;
  }
  for (const Matrix& one : matrices) {
    file.align();
    file.numbers(*one.numbers, precision);
  }
  file.align();
}

}  // namespace

Result<void> check_weights(const LoraWeights& weights, const engine::BaseShape& base, FactorPrecision precision) {
  if (weights.factors.empty()) return engine::refusal("the adapter changes nothing: it holds no factors");
  if (!std::isfinite(weights.alpha) || weights.alpha == 0) return engine::refusal("the adapter's alpha is no scale");
  for (const LoraFactor& one : weights.factors) {
    const std::string name = engine::name_of(one.layer, one.projection);
    const engine::ProjectionShape shape{one.n_in, one.n_out};
    const bool fits = one.layer < base.layers && shape == base.projections[static_cast<std::size_t>(one.projection)] &&
                      one.rank > 0 && one.a.size() == std::size_t{one.rank} * one.n_in &&
                      one.b.size() == std::size_t{one.rank} * one.n_out;
    if (!fits) return engine::refusal(name + ": the factors do not fit the base");
    const float largest = std::fmax(engine::largest_magnitude(one.a), engine::largest_magnitude(one.b));
    const bool finite = std::isfinite(engine::largest_magnitude(one.a)) && std::isfinite(largest) &&
                        std::isfinite(engine::largest_magnitude(one.b));
    if (!finite) return engine::refusal(name + ": the factors hold numbers that are infinite or not a number");
    if (precision == FactorPrecision::f16 && largest > largest_half) {
      return engine::refusal(name + ": the factors hold numbers too large for half precision");
    }
  }
  return {};
}

Result<void> write_gguf_adapter(const std::filesystem::path& path, const LoraWeights& weights,
                                const engine::BaseShape& base, FactorPrecision precision) {
  if (auto good = check_weights(weights, base, precision); !good) return good;
  const auto matrices = matrices_of(weights);
  Writer file;
  write_metadata(file, weights, base, matrices.size());
  write_tensors(file, matrices, precision);
  return base::write_file_atomically(path, file.text());
}

}  // namespace molly::training
