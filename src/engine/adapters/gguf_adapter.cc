#include <algorithm>
#include <cmath>
#include <optional>

#include "engine/adapters/factor_pairs.h"
#include "engine/adapters/lora_formats.h"
#include "gguf/model_file.h"

namespace molly::engine {
namespace {

// Far more than any adapter needs, far less than a hostile header could ask for.
constexpr gguf::Limits adapter_limits{.max_header_bytes = 64ULL << 20,
                                      .max_kept_bytes = 16ULL << 20,
                                      .max_keys = 4096,
                                      .max_tensors = 100'000,
                                      .max_string_bytes = 4ULL << 20,
                                      .max_kept_elements = 1024};

// "blk.3.attn_q.weight.lora_a"
constexpr FactorNames factor_names{
    .front = "blk.", .back_a = ".weight.lora_a", .back_b = ".weight.lora_b", .projections = projection_names};

std::optional<NumberFormat> format_of(std::uint32_t type) {
  switch (static_cast<gguf::TensorType>(type)) {
    case gguf::TensorType::f32: return NumberFormat::f32;
    case gguf::TensorType::f16: return NumberFormat::f16;
    case gguf::TensorType::bf16: return NumberFormat::bf16;
    case gguf::TensorType::q8_0: return NumberFormat::q8_0;
    default: return std::nullopt;
  }
}

std::string text_of(const gguf::ModelFile& header, std::string_view key) { return header.text(key).value_or(""); }

std::optional<double> real_number(const gguf::ModelFile& header, std::string_view key) {
  const auto found = header.metadata.find(key);
  if (found == header.metadata.end()) return std::nullopt;
  if (const auto* number = std::get_if<double>(&found->second)) return *number;
  const auto whole = header.number(key);
  return whole ? std::optional(static_cast<double>(*whole)) : std::nullopt;
}

Result<void> check_kind(const gguf::ModelFile& header, const BaseShape& base) {
  if (text_of(header, "general.type") != "adapter")
    return refusal("this GGUF file is no adapter: general.type says so");
  if (text_of(header, "adapter.type") != "lora") {
    return refusal("adapters of type '" + shown(text_of(header, "adapter.type")) + "' are not supported, only 'lora'");
  }
  if (header.metadata.contains("adapter.alora.invocation_tokens")) {
    return refusal("activated LoRA (adapter.alora.invocation_tokens) is not supported");
  }
  if (header.architecture != base.architecture) {
    return refusal("the adapter is for the architecture '" + shown(header.architecture) + "', the base is '" +
                   base.architecture + "'");
  }
  return {};
}

Result<StoredMatrix> matrix_of(const gguf::Tensor& tensor, std::uint64_t data_offset) {
  const auto format = format_of(tensor.type);
  if (!format) return refusal(shown(tensor.name) + ": its number type is not supported; F32, F16, BF16 and Q8_0 are");
  if (tensor.dimensions[2] != 1 || tensor.dimensions[3] != 1) return refusal(shown(tensor.name) + ": it is no matrix");
  return StoredMatrix{.rows = tensor.dimensions[1],
                      .columns = tensor.dimensions[0],
                      .format = *format,
                      .offset = data_offset + tensor.offset};
}

Result<void> check_apart(std::vector<gguf::Tensor> tensors) {
  std::ranges::sort(tensors, {}, &gguf::Tensor::offset);
  for (std::size_t i = 1; i < tensors.size(); ++i) {
    if (tensors[i].offset < tensors[i - 1].offset + tensors[i - 1].bytes) {
      return refusal(shown(tensors[i].name) + ": its numbers overlap those of another tensor");
    }
  }
  return {};
}

Result<FactorPairs> collect(const gguf::ModelFile& header, const BaseShape& base) {
  FactorPairs pairs(base);
  for (const auto& tensor : header.tensors) {
    const auto name = factor_names.parse(tensor.name);
    if (!name) return refusal("adapters of the tensor '" + shown(tensor.name) + "' are not supported");
    const auto matrix = matrix_of(tensor, header.data_offset);
    if (!matrix) return std::unexpected(matrix.error());
    if (auto added = pairs.add(*name, *matrix); !added) return std::unexpected(std::move(added.error()));
  }
  return pairs;
}

Result<gguf::ModelFile> read_header(const ByteSource& file) {
  std::optional<Error> unreadable;
  const auto source = [&](std::uint64_t position, std::span<std::uint8_t> into) -> std::size_t {
    const auto count = file.read_some(position, into);
    if (!count) unreadable = count.error();
    return count.value_or(0);
  };
  auto header = gguf::parse_model_file(source, file.size(), adapter_limits);
  if (unreadable) return std::unexpected(*std::move(unreadable));
  return header;
}

}  // namespace

Result<LoraFile> parse_lora_gguf(std::shared_ptr<const ByteSource> file, const BaseShape& base) {
  const auto header = read_header(*file);
  if (!header) return std::unexpected(header.error());
  if (auto fits = check_kind(*header, base); !fits) return std::unexpected(std::move(fits.error()));
  const auto alpha = real_number(*header, "adapter.lora.alpha");
  if (!alpha || !std::isfinite(*alpha)) return refusal("the adapter does not say its alpha (adapter.lora.alpha)");
  if (auto apart = check_apart(header->tensors); !apart) return std::unexpected(std::move(apart.error()));
  const auto pairs = collect(*header, base);
  if (!pairs) return std::unexpected(pairs.error());
  // As llama.cpp does it: alpha 0 stands for no scaling.
  auto tensors = pairs->tensors([&](std::uint32_t, Projection, std::uint32_t rank) -> Result<float> {
    return *alpha == 0 ? 1.0F : static_cast<float>(*alpha / rank);
  });
  if (!tensors) return std::unexpected(std::move(tensors.error()));
  return LoraFile{.name = header->name,
                  .base = text_of(*header, "general.base_model.0.name"),
                  .tensors = *std::move(tensors),
                  .file = std::move(file)};
}

}  // namespace molly::engine
