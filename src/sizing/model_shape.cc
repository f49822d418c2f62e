#include "sizing/model_shape.h"

namespace molly::sizing {
namespace {

struct Size {
  std::string_view key;
  std::uint64_t most;
  std::uint64_t ModelShape::* into;
};

// As the engine bounds them.
constexpr Size sizes[] = {{"block_count", 1'024, &ModelShape::layers},
                          {"embedding_length", 65'536, &ModelShape::embedding},
                          {"attention.head_count", 1'024, &ModelShape::heads},
                          {"feed_forward_length", 1'048'576, &ModelShape::feed_forward},
                          {"context_length", 1ULL << 30, &ModelShape::trained_context}};
constexpr std::uint64_t largest_head = 256;
constexpr std::uint64_t largest_vocabulary = 1ULL << 24;

}  // namespace

std::expected<ModelShape, std::string> read_shape(const gguf::ModelFile& model) {
  ModelShape shape;
  for (const Size& size : sizes) {
    const auto value = model.number(size.key);
    if (!value || *value == 0 || *value > size.most) {
      return std::unexpected("its " + std::string(size.key) + " is missing or out of range");
    }
    shape.*size.into = *value;
  }
  shape.kv_heads = model.number("attention.head_count_kv").value_or(shape.heads);
  if (shape.kv_heads == 0 || shape.kv_heads > shape.heads || shape.heads % shape.kv_heads != 0) {
    return std::unexpected("its query heads are no multiple of its key-value heads");
  }
  shape.head_dim = model.number("attention.key_length").value_or(shape.embedding / shape.heads);
  if (shape.head_dim == 0 || shape.head_dim > largest_head) {
    return std::unexpected("its heads have " + std::to_string(shape.head_dim) + " numbers");
  }
  shape.vocabulary = model.vocabulary;
  if (shape.vocabulary < 2 || shape.vocabulary > largest_vocabulary) return std::unexpected("it has no vocabulary");
  return shape;
}

}  // namespace molly::sizing
