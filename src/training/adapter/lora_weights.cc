#include "training/adapter/lora_weights.h"

#include <cmath>

#include "engine/adapters/factor_pairs.h"
#include "training/adapter/rotary_rows.h"

namespace molly::training {
namespace {

Result<std::vector<float>> numbers_of(const engine::LoraFile& file, const engine::StoredMatrix& matrix) {
  std::vector<std::uint8_t> bytes(matrix.bytes());
  if (auto read = file.file->read(matrix.offset, bytes); !read) return std::unexpected(read.error());
  std::vector<float> numbers(matrix.rows * matrix.columns);
  engine::decode(matrix.format, bytes, numbers);
  return numbers;
}

// Files keep alpha / rank rounded, so alpha comes back with an error in its last digit. Alphas are round numbers.
double alpha_of(const engine::LoraTensor& tensor) {
  const double alpha = static_cast<double>(tensor.scale) * tensor.rank();
  const double rounded = std::round(alpha * 1024) / 1024;
  return std::abs(alpha - rounded) <= 1e-6 * std::abs(alpha) ? rounded : alpha;
}

Result<LoraFactor> read_factor(const engine::LoraFile& file, const engine::LoraTensor& tensor) {
  auto a = numbers_of(file, tensor.a);
  if (!a) return std::unexpected(a.error());
  auto b = numbers_of(file, tensor.b);
  if (!b) return std::unexpected(b.error());
  if (!std::isfinite(engine::largest_magnitude(*a)) || !std::isfinite(engine::largest_magnitude(*b))) {
    return engine::refusal(engine::name_of(tensor.layer, tensor.projection) +
                           ": the adapter holds numbers that are infinite or not a number");
  }
  if (tensor.interleaved_heads > 0) *b = interleaved(*b, tensor.rank(), tensor.interleaved_heads);
  return LoraFactor{.layer = tensor.layer,
                    .projection = tensor.projection,
                    .rank = tensor.rank(),
                    .n_in = tensor.n_in(),
                    .n_out = tensor.n_out(),
                    .a = *std::move(a),
                    .b = *std::move(b)};
}

}  // namespace

Result<LoraWeights> read_lora_weights(const std::filesystem::path& path, const engine::BaseShape& base) {
  const auto file = engine::read_lora_file(path, base);
  if (!file) return std::unexpected(file.error());
  // Of a file that scales all of it away, one is as good as any.
  const double first = alpha_of(file->tensors.front());
  const double alpha = first == 0 ? 1 : first;
  LoraWeights out{.name = file->name, .base_name = file->base, .alpha = static_cast<float>(alpha)};
  for (const engine::LoraTensor& tensor : file->tensors) {
    auto factor = read_factor(*file, tensor);
    if (!factor) return std::unexpected(factor.error());
    const double own = alpha_of(tensor);
    if (own != alpha) {
      for (float& number : factor->b) number = static_cast<float>(number * (own / alpha));
    }
    out.factors.push_back(*std::move(factor));
  }
  return out;
}

}  // namespace molly::training
