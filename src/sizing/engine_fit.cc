#include "sizing/engine_fit.h"

#include <algorithm>
#include <array>

namespace molly::sizing {
namespace {

constexpr std::array<std::string_view, 4> architectures{"llama", "mistral3", "qwen2", "qwen3"};
constexpr std::array tensor_types{gguf::TensorType::f32,  gguf::TensorType::f16,  gguf::TensorType::bf16,
                                  gguf::TensorType::q4_0, gguf::TensorType::q8_0, gguf::TensorType::q4_k,
                                  gguf::TensorType::q5_k, gguf::TensorType::q6_k};

std::optional<std::string> unfit_heads(const gguf::ModelFile& model) {
  const std::uint64_t usual = model.heads > 0 ? model.embedding_length / model.heads : 0;
  const std::uint64_t keys = model.number("attention.key_length").value_or(usual);
  const std::uint64_t values = model.number("attention.value_length").value_or(keys);
  if (keys < 32 || keys > 256 || keys % 32 != 0 || values != keys) {
    return "its heads have " + std::to_string(keys) + " numbers, not a multiple of 32 up to 256";
  }
  return std::nullopt;
}

std::optional<std::string> unfit_tensors(const gguf::ModelFile& model) {
  for (const gguf::Tensor& tensor : model.tensors) {
    const auto type = static_cast<gguf::TensorType>(tensor.type);
    if (!std::ranges::contains(tensor_types, type)) {
      return "its tensor " + tensor.name + " has a number format that the engine does not compute with";
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> unfit_for_engine(const gguf::ModelFile& model) {
  if (!std::ranges::contains(architectures, model.architecture)) {
    return "its architecture is '" + model.architecture + "', not llama, mistral3, qwen2 or qwen3";
  }
  if (model.number("split.count").value_or(1) > 1) return "it lies in several files";
  if (model.number("expert_count").value_or(0) > 0) return "it is a mixture of experts";
  if (model.number("attention.sliding_window").value_or(0) > 0) return "its attention has a sliding window";
  const auto scaling = model.text(model.architecture + ".rope.scaling.type").value_or("none");
  if (scaling != "none" && scaling != "linear") return "its rope scaling is of the kind '" + scaling + "'";
  if (auto heads = unfit_heads(model)) return heads;
  return unfit_tensors(model);
}

}  // namespace molly::sizing
