#include "engine/model/config.h"

#include <cmath>

namespace molly::engine {
namespace {

std::unexpected<Error> refuse(std::string sentence) { return failure(ErrorCode::invalid_request, std::move(sentence)); }

Result<std::uint32_t> whole(const gguf::ModelFile& file, std::string_view key, std::uint64_t most) {
  const auto value = file.number(key);
  if (!value) return refuse("the model file does not say its " + std::string(key));
  if (*value == 0 || *value > most) return refuse("the model file's " + std::string(key) + " is out of range");
  return static_cast<std::uint32_t>(*value);
}

std::optional<double> real(const gguf::ModelFile& file, std::string_view key) {
  const auto found = file.metadata.find(file.architecture + "." + std::string(key));
  if (found == file.metadata.end()) return std::nullopt;
  if (const auto* value = std::get_if<double>(&found->second)) return *value;
  return std::nullopt;
}

Result<void> read_sizes(const gguf::ModelFile& file, ModelConfig& config) {
  struct Size {
    std::string_view key;
    std::uint64_t most;
    std::uint32_t ModelConfig::* into;
  };
  constexpr Size sizes[] = {{"embedding_length", 65'536, &ModelConfig::n_embd},
                            {"block_count", 1'024, &ModelConfig::n_layer},
                            {"attention.head_count", 1'024, &ModelConfig::n_head},
                            {"feed_forward_length", 1'048'576, &ModelConfig::n_ff},
                            {"context_length", 1ULL << 30, &ModelConfig::n_context}};
  for (const Size& size : sizes) {
    const auto value = whole(file, size.key, size.most);
    if (!value) return std::unexpected(value.error());
    config.*size.into = *value;
  }
  return {};
}

Result<void> read_heads(const gguf::ModelFile& file, ModelConfig& config) {
  config.n_head_kv = static_cast<std::uint32_t>(file.number("attention.head_count_kv").value_or(config.n_head));
  if (config.n_head_kv == 0 || config.n_head_kv > config.n_head || config.n_head % config.n_head_kv != 0) {
    return refuse("the model's query heads are no multiple of its key-value heads");
  }
  config.head_dim =
      static_cast<std::uint32_t>(file.number("attention.key_length").value_or(config.n_embd / config.n_head));
  const auto value_length = file.number("attention.value_length").value_or(config.head_dim);
  if (config.head_dim < 32 || config.head_dim > 256 || config.head_dim % 32 != 0 || value_length != config.head_dim) {
    return refuse("heads of " + std::to_string(config.head_dim) +
                  " numbers are not supported: 32 to 256, a multiple of 32, keys as long as values");
  }
  return {};
}

Result<void> read_rope(const gguf::ModelFile& file, ModelConfig& config) {
  config.rope_dims = static_cast<std::uint32_t>(file.number("rope.dimension_count").value_or(config.head_dim));
  if (config.rope_dims > config.head_dim || config.rope_dims % 2 != 0) {
    return refuse("the model file's rope.dimension_count does not fit its heads");
  }
  config.rope_base = static_cast<float>(real(file, "rope.freq_base").value_or(10'000));
  const auto kind = file.text(file.architecture + ".rope.scaling.type").value_or("none");
  if (kind == "linear") {
    const double factor = real(file, "rope.scaling.factor").value_or(1);
    config.rope_frequency_scale = static_cast<float>(1 / factor);
  } else if (kind != "none") {
    return refuse("rope scaling of the kind '" + kind + "' is not supported");
  }
  const bool sane = std::isfinite(config.rope_base) && config.rope_base > 1 &&
                    std::isfinite(config.rope_frequency_scale) && config.rope_frequency_scale > 0;
  if (!sane) return refuse("the model file's rope constants are out of range");
  return {};
}

}  // namespace

Result<ModelConfig> read_dense_config(const gguf::ModelFile& file) {
  ModelConfig config;
  config.architecture = file.architecture;
  if (auto sizes = read_sizes(file, config); !sizes) return std::unexpected(sizes.error());
  if (auto heads = read_heads(file, config); !heads) return std::unexpected(heads.error());
  if (auto rope = read_rope(file, config); !rope) return std::unexpected(rope.error());
  config.norm_epsilon = static_cast<float>(real(file, "attention.layer_norm_rms_epsilon").value_or(1e-5));
  if (!(config.norm_epsilon > 0 && config.norm_epsilon < 1)) {
    return refuse("the model file's attention.layer_norm_rms_epsilon is out of range");
  }
  config.n_vocab = static_cast<std::uint32_t>(file.vocabulary);
  if (config.n_vocab < 2 || file.vocabulary > (1U << 24)) return refuse("the model file has no vocabulary");
  return config;
}

}  // namespace molly::engine
