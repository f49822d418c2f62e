#include <algorithm>
#include <array>
#include <optional>

#include "engine/adapters/factor_pairs.h"
#include "engine/adapters/lora_formats.h"
#include "engine/adapters/peft_config.h"
#include "engine/adapters/safetensors.h"

namespace molly::engine {
namespace {

// In the order of Projection.
constexpr std::array<std::string_view, projection_count> module_names{
    "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
    "mlp.gate_proj",    "mlp.up_proj",      "mlp.down_proj"};

std::string module_of(std::uint32_t layer, Projection projection) {
  return "model.layers." + std::to_string(layer) + "." +
         std::string(module_names[static_cast<std::size_t>(projection)]);
}

// "base_model.model.model.layers.3.self_attn.q_proj.lora_A.weight"
std::optional<FactorName> parse_factor_name(std::string_view name) {
  constexpr std::string_view front = "base_model.model.model.layers.";
  constexpr std::string_view back = ".lora_A.weight";
  const bool is_b = name.ends_with(".lora_B.weight");
  if (!name.starts_with(front) || (!is_b && !name.ends_with(back))) return std::nullopt;
  name.remove_suffix(back.size());
  if (name.size() < front.size()) return std::nullopt;
  return parse_place(name.substr(front.size()), is_b ? Factor::b : Factor::a, module_names);
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
  return StoredMatrix{.rows = tensor.shape[0], .columns = tensor.shape[1], .format = *format, .bytes = tensor.bytes};
}

Result<FactorPairs> collect(const std::vector<SafeTensor>& tensors, const BaseShape& base) {
  FactorPairs pairs(base);
  for (const auto& tensor : tensors) {
    const auto name = parse_factor_name(tensor.name);
    if (!name) return unsupported(tensor.name);
    const auto matrix = matrix_of(tensor);
    if (!matrix) return std::unexpected(matrix.error());
    if (auto added = pairs.add(*name, *matrix); !added) return std::unexpected(std::move(added.error()));
  }
  return pairs;
}

// Within each head, row i of the first half and row i of the second come to lie beside each other: what llama.cpp's
// convert_hf_to_gguf.py (LlamaModel.permute) did to the base's rows.
Result<void> permute_rows(LoraTensor& tensor, std::uint32_t heads) {
  const std::size_t rank = tensor.rank;
  const std::size_t rows = tensor.b.size() / rank;
  if (rows % (2 * std::size_t{heads}) != 0) {
    return refusal(name_of(tensor.layer, tensor.projection) + ": B has " + std::to_string(rows) +
                   " rows, which is no even number for each of " + std::to_string(heads) + " heads");
  }
  const std::size_t half = rows / heads / 2;
  std::vector<float> permuted(tensor.b.size());
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t head = row / (2 * half);
    const std::size_t within = row % (2 * half);
    const std::size_t target = head * 2 * half + within % half * 2 + within / half;
    std::copy_n(tensor.b.data() + row * rank, rank, permuted.data() + target * rank);
  }
  tensor.b = std::move(permuted);
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

Result<LoraFile> parse_lora_peft(std::span<const std::uint8_t> weights, std::string_view config,
                                 const BaseShape& base) {
  const auto settings = parse_peft_config(config);
  if (!settings) return std::unexpected(settings.error());
  const auto stored = parse_safetensors(weights);
  if (!stored) return std::unexpected(stored.error());
  const auto pairs = collect(*stored, base);
  if (!pairs) return std::unexpected(pairs.error());
  auto tensors = pairs->tensors([&](std::uint32_t layer, Projection projection, std::uint32_t rank) {
    return scale_in(*settings, layer, projection, rank);
  });
  if (!tensors) return std::unexpected(std::move(tensors.error()));
  for (auto& tensor : *tensors) {
    const auto heads = permuted_heads(base, tensor.projection);
    if (heads == 0) continue;
    if (auto done = permute_rows(tensor, heads); !done) return std::unexpected(std::move(done.error()));
  }
  return LoraFile{.name = "", .base = settings->base, .tensors = *std::move(tensors)};
}

}  // namespace molly::engine
