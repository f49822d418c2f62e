#include "sizing/engine_memory.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "sizing/saturating.h"

namespace molly::sizing {
namespace {

using gguf::TensorType;

constexpr std::uint64_t alignment = 64;  // of rows and chunks in a page

// Projections that share their input lie in one matrix where their types agree.
constexpr std::array<std::array<std::string_view, 3>, 2> fused_groups{
    {{"attn_q", "attn_k", "attn_v"}, {"ffn_gate", "ffn_up", ""}}};

std::uint64_t row_bytes(NumberType type, std::uint64_t numbers) {
  return type == NumberType::f16 ? numbers * 2 : divided_up(numbers, 32) * 34;
}

using TensorsByName = std::map<std::string_view, const gguf::Tensor*>;

// Of a group of 16 outputs and a block of inputs, packed and in the file (engine/kernels/packed_layout.h).
struct PackedGrowth {
  TensorType type;
  std::uint64_t packed;
  std::uint64_t stored;
};
constexpr PackedGrowth packed_growths[] = {{TensorType::q4_0, 288, 288},
                                           {TensorType::q8_0, 544, 544},
                                           {TensorType::q4_k, 2368, 2304},
                                           {TensorType::q6_k, 4384, 3360}};

const PackedGrowth* packed_growth(const gguf::Tensor& tensor, const Device& device) {
  if (!device.multiplies_bytes) return nullptr;
  const auto* found = std::ranges::find(packed_growths, static_cast<TensorType>(tensor.type), &PackedGrowth::type);
  return found == std::end(packed_growths) ? nullptr : found;
}

std::uint64_t copied_bytes(const gguf::Tensor& tensor, const Device& device) {
  const PackedGrowth* growth = packed_growth(tensor, device);
  return growth == nullptr ? tensor.bytes : divided_up(times(tensor.bytes, growth->packed), growth->stored);
}

bool is_repacked(const gguf::Tensor& tensor, const Device& device) {
  if (packed_growth(tensor, device) != nullptr) return true;
  constexpr std::uint64_t interleaved_rows = 8;
  return tensor.dimensions[1] % interleaved_rows == 0 &&
         std::ranges::contains(device.repacked, static_cast<gguf::TensorType>(tensor.type));
}

// Whether one of the same group and layer has the same type: "blk.3.attn_q.weight" is fused with "blk.3.attn_k.weight".
bool is_fused(const gguf::Tensor& tensor, const TensorsByName& all) {
  const std::size_t dot = tensor.name.find('.', tensor.name.find('.') + 1);
  if (!tensor.name.starts_with("blk.") || dot == std::string::npos) return false;
  const std::string layer = tensor.name.substr(0, dot + 1);
  const std::string own = tensor.name.substr(dot + 1);
  for (const auto& group : fused_groups) {
    const auto at =
        std::ranges::find_if(group, [&](std::string_view name) { return own == std::string(name) + ".weight"; });
    if (at == group.end()) continue;
    const auto agrees = [&](std::string_view neighbour) {
      const auto found = all.find(layer + std::string(neighbour) + ".weight");
      return found != all.end() && found->second->type == tensor.type;
    };
    return (at != group.begin() && agrees(*std::prev(at))) || (std::next(at) != group.end() && agrees(*std::next(at)));
  }
  return false;
}

bool is_matrix(const gguf::Tensor& tensor) {
  return tensor.name.ends_with(".weight") && tensor.dimensions[1] > 1 && tensor.name != "token_embd.weight";
}

}  // namespace

std::string_view to_string(NumberType type) { return type == NumberType::f16 ? "f16" : "q8_0"; }

WeightBytes weight_bytes(const gguf::ModelFile& model, const Device& device) {
  TensorsByName all;
  for (const gguf::Tensor& tensor : model.tensors) all.emplace(tensor.name, &tensor);
  WeightBytes out;
  for (const gguf::Tensor& tensor : model.tensors) {
    const bool copied = is_matrix(tensor) && (is_repacked(tensor, device) || is_fused(tensor, all));
    std::uint64_t& sum = copied ? out.copied : out.mapped;
    sum = plus(sum, copied ? copied_bytes(tensor, device) : tensor.bytes);
    // Rows of the embedding are read one by one, which no layout of a processor's own allows: tied, it is there twice.
    const bool twice =
        tensor.name == "token_embd.weight" && !all.contains("output.weight") && is_repacked(tensor, device);
    if (twice) out.copied = plus(out.copied, copied_bytes(tensor, device));
  }
  return out;
}

std::uint64_t page_bytes(const ModelShape& shape, std::uint64_t page_tokens, NumberType type) {
  const std::uint64_t chunk = rounded_up(times(row_bytes(type, shape.kv_width()), page_tokens), alignment);
  return times(2 * shape.layers, chunk);
}

std::uint64_t adapter_pages(const ModelShape& shape, std::uint64_t rank, NumberType type, std::uint64_t page_bytes) {
  // Numbers in the rows of A and of B for each projection: q, k, v, output, gate, up, down.
  const std::array widths{shape.embedding,    shape.query_width(), shape.embedding,     shape.kv_width(),
                          shape.embedding,    shape.kv_width(),    shape.query_width(), shape.embedding,
                          shape.embedding,    shape.feed_forward,  shape.embedding,     shape.feed_forward,
                          shape.feed_forward, shape.embedding};
  std::map<std::uint64_t, std::uint64_t, std::greater<>> rows;  // bytes of a row, and how many of them there are
  for (const std::uint64_t width : widths)
    rows[rounded_up(row_bytes(type, width), alignment)] += times(shape.layers, rank);
  if (rows.begin()->first > page_bytes) return 0;
  std::uint64_t pages = 0;
  // Page after page takes the largest rows that still fit. Pages that take the same rows are counted at once.
  while (!rows.empty()) {
    std::uint64_t room = page_bytes;
    std::uint64_t alike = largest;
    std::map<std::uint64_t, std::uint64_t> taken;
    for (const auto& [bytes, count] : rows) {
      const std::uint64_t fitting = std::min(count, room / bytes);
      if (fitting == 0) continue;
      taken[bytes] = fitting;
      room -= fitting * bytes;
      alike = std::min(alike, count / fitting);
    }
    pages += alike;
    for (const auto& [bytes, count] : taken) rows[bytes] -= count * alike;
    std::erase_if(rows, [](const auto& left) { return left.second == 0; });
  }
  return pages;
}

std::uint64_t activation_bytes(const ModelShape& shape) {
  constexpr std::uint64_t step_rows = 256;  // EngineOptions::max_rows
  const std::uint64_t row = shape.vocabulary + 3 * shape.feed_forward + 4 * shape.embedding + 4 * shape.query_width();
  return times(step_rows * sizeof(float), row);
}

std::uint64_t compute_bytes(const ModelShape& shape) {
  constexpr std::uint64_t process_bytes = 48ULL << 20;  // programs, libraries, buffers of connections
  constexpr std::uint64_t token_bytes = 256;            // a token's text and its places in the vocabulary's tables
  return plus(plus(activation_bytes(shape), times(shape.vocabulary, token_bytes)), process_bytes);
}

}  // namespace molly::sizing
