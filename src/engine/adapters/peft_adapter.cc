#include <algorithm>
#include <array>
#include <optional>

#include "engine/adapters/factor_pairs.h"
#include "engine/adapters/lora_formats.h"
#include "engine/adapters/peft_config.h"
#include "engine/adapters/safetensors.h"

namespace molly::engine {
namespace {

// "base_model.model.model.layers.3.self_attn.q_proj.lora_A.weight"
constexpr FactorNames factor_names{
    .front = "base_model.model.model.layers.",
    .back_a = ".lora_A.weight",
    .back_b = ".lora_B.weight",
    .projections = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj",
                    "mlp.up_proj", "mlp.down_proj"}};

std::string module_of(std::uint32_t layer, Projection projection) {
  return "model.layers." + std::to_string(layer) + "." +
         std::string(factor_names.projections[static_cast<std::size_t>(projection)]);
}

std::optional<NumberFormat> format_of(std::string_view dtype) {
  if (dtype == "F32") return NumberFormat::f32;
  if (dtype == "F16") return NumberFormat::f16;
  if (dtype == "BF16") return NumberFormat::bf16;
  return std::nullopt;
}

std::unexpected<Error> unsupported(std::string_view name) {
  if (name.contains("lora_magnitude_vector")) return refusal("DoRA is not supported: it scales the base's own columns");
  return refusal("adapters of the tensor '" + shown(name) + "' are not supported");
}

Result<StoredMatrix> matrix_of(const SafeTensor& tensor) {
  const auto format = format_of(tensor.dtype);
  if (!format) {
    return refusal(shown(tensor.name) + ": its type " + shown(tensor.dtype) + " is not supported; F32, F16, BF16 are");
  }
  if (tensor.shape.size() != 2) return refusal(shown(tensor.name) + ": it is no matrix");
  return StoredMatrix{.rows = tensor.shape[0], .columns = tensor.shape[1], .format = *format, .offset = tensor.offset};
}

Result<FactorPairs> collect(const std::vector<SafeTensor>& tensors, const BaseShape& base) {
  FactorPairs pairs(base);
  for (const auto& tensor : tensors) {
    const auto name = factor_names.parse(tensor.name);
    if (!name) return unsupported(tensor.name);
    const auto matrix = matrix_of(tensor);
    if (!matrix) return std::unexpected(matrix.error());
    if (auto added = pairs.add(*name, *matrix); !added) return std::unexpected(std::move(added.error()));
  }
  return pairs;
}

Result<void> interleave(LoraTensor& tensor, std::uint32_t heads) {
  if (heads != 0 && tensor.b.rows % (2 * std::uint64_t{heads}) != 0) {
    return refusal(name_of(tensor.layer, tensor.projection) + ": B has " + std::to_string(tensor.b.rows) +
                   " rows, which is no even number for each of " + std::to_string(heads) + " heads");
  }
  tensor.interleaved_heads = heads;
  return {};
}

std::uint32_t permuted_heads(const BaseShape& base, Projection projection) {
  if (projection == Projection::attn_q) return base.permuted_heads;
  if (projection == Projection::attn_k) return base.permuted_heads_kv;
  return 0;
}

Result<float> scale_in(const PeftConfig& config, std::uint32_t layer, Projection projection, std::uint32_t rank) {
  const auto module = module_of(layer, projection);
  if (config.rank_of(module) == rank) return static_cast<float>(config.scale_of(module, rank));
  return refusal(name_of(layer, projection) + ": the adapter's factors have rank " + std::to_string(rank) +
                 ", adapter_config.json says " + std::to_string(config.rank_of(module)));
}

}  // namespace

Result<LoraFile> parse_lora_peft(std::shared_ptr<const ByteSource> weights, std::string_view config,
                                 const BaseShape& base) {
  const auto settings = parse_peft_config(config);
  if (!settings) return std::unexpected(settings.error());
  const auto stored = parse_safetensors(*weights);
  if (!stored) return std::unexpected(stored.error());
  const auto pairs = collect(*stored, base);
  if (!pairs) return std::unexpected(pairs.error());
  auto tensors = pairs->tensors([&](std::uint32_t layer, Projection projection, std::uint32_t rank) {
    return scale_in(*settings, layer, projection, rank);
  });
  if (!tensors) return std::unexpected(std::move(tensors.error()));
  for (auto& tensor : *tensors) {
    auto done = interleave(tensor, permuted_heads(base, tensor.projection));
    if (!done) return std::unexpected(std::move(done.error()));
  }
  return LoraFile{.name = "", .base = settings->base, .tensors = *std::move(tensors), .file = std::move(weights)};
}

}  // namespace molly::engine
