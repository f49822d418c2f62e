#include "gguf/memory.h"

#include <limits>

namespace molly::gguf {
namespace {

constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max() / 8;  // sums of a few still fit
constexpr std::uint64_t runtime_bytes = 64ULL << 20;  // the process itself: an idle one takes half of that
constexpr std::uint64_t batch_tokens = 512;           // llama-server's physical batch
constexpr std::uint64_t activation_copies = 12;       // live embedding-wide rows while a layer is computed
constexpr std::uint64_t default_context = 4096;       // for files that say nothing

std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) || product > largest ? largest : product;
}

std::uint64_t plus(std::uint64_t a, std::uint64_t b) {
  return std::min(largest, std::min(a, largest) + std::min(b, largest));
}

// Layers with a sliding window keep only that many tokens; a file that does not say which layers those are is
// counted as if none were.
std::vector<std::uint64_t> cached_tokens(const ModelFile& model, std::uint64_t context) {
  const std::uint64_t window = model.number("attention.sliding_window").value_or(0);
  const auto windowed = model.per_layer("attention.sliding_window_pattern", 0);
  const auto period = model.number("attention.sliding_window_pattern");
  std::vector<std::uint64_t> tokens(windowed.size(), context);
  if (window == 0) return tokens;
  for (std::size_t layer = 0; layer < tokens.size(); ++layer) {
    const bool limited = period ? *period > 1 && (layer + 1) % *period != 0 : windowed[layer] != 0;
    if (limited) tokens[layer] = std::min(context, plus(window, batch_tokens));
  }
  return tokens;
}

std::uint64_t cache_bytes(const ModelFile& model, std::uint64_t context, TensorType cache_type) {
  const std::uint64_t head = model.heads == 0 ? 0 : model.embedding_length / model.heads;
  const std::uint64_t key_width = model.number("attention.key_length").value_or(head);
  const std::uint64_t value_width = model.number("attention.value_length").value_or(head);
  const auto heads = model.per_layer("attention.head_count_kv", model.heads);
  const auto tokens = cached_tokens(model, context);
  const auto layout = type_layout(cache_type).value_or(TypeLayout{TensorType::f32, "F32", 1, 4});
  std::uint64_t bytes = 0;
  for (std::size_t layer = 0; layer < heads.size(); ++layer) {
    const std::uint64_t elements = times(times(heads[layer], plus(key_width, value_width)), tokens[layer]);
    bytes = plus(bytes, times(elements / layout.elements + 1, layout.bytes));
  }
  return bytes;
}

// State-space layers keep a state for each sequence instead of keys and values.
std::uint64_t recurrent_bytes(const ModelFile& model) {
  constexpr std::uint64_t sequences = 4;
  const std::uint64_t inner = model.number("ssm.inner_size").value_or(0);
  const std::uint64_t width =
      plus(model.number("ssm.state_size").value_or(0), model.number("ssm.conv_kernel").value_or(0));
  return times(times(times(inner, width), times(model.layers, sequences)), sizeof(float));
}

std::uint64_t compute_bytes(const ModelFile& model, std::uint64_t context) {
  const std::uint64_t logits = times(batch_tokens * sizeof(float), model.vocabulary);
  const std::uint64_t activations = times(batch_tokens * sizeof(float) * activation_copies, model.embedding_length);
  const std::uint64_t mask = times(batch_tokens * (sizeof(float) + sizeof(float) / 2), context);
  return plus(plus(logits, activations), plus(mask, runtime_bytes));
}

}  // namespace

MemoryEstimate estimate_memory(const ModelFile& model, std::uint64_t context, TensorType cache_type) {
  if (context == 0) context = model.context_length;
  if (context == 0) context = default_context;
  return {.weights = std::min(model.tensor_bytes, largest),
          .key_value_cache = plus(cache_bytes(model, context, cache_type), recurrent_bytes(model)),
          .compute = compute_bytes(model, context)};
}

}  // namespace molly::gguf
