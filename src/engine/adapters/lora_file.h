#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "engine/adapters/byte_source.h"
#include "engine/adapters/number_format.h"

// LoRA adapters as files: llama.cpp's GGUF form and PEFT's safetensors. Read into one neutral form; whether it fits a
// base is checked against that base's shapes.
namespace molly::engine {

// The linear projections of a decoder layer that adapters may change, in llama.cpp's names.
enum class Projection : std::uint8_t { attn_q, attn_k, attn_v, attn_output, ffn_gate, ffn_up, ffn_down };
inline constexpr std::size_t projection_count = 7;
// In the order of Projection.
inline constexpr std::array<std::string_view, projection_count> projection_names{
    "attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"};
std::string_view to_string(Projection projection);

struct ProjectionShape {
  std::uint32_t n_in = 0;
  std::uint32_t n_out = 0;
  bool operator==(const ProjectionShape&) const = default;
};

// What a base expects of its adapters.
struct BaseShape {
  std::string architecture;  // general.architecture, e.g. "llama"
  std::uint32_t layers = 0;
  ProjectionShape projections[projection_count];
  // Query and key rows are stored permuted for rotary embedding of neighbouring pairs (architecture "llama"): factors
  // from PEFT need the same permutation. 0: not permuted.
  std::uint32_t permuted_heads = 0;     // of q
  std::uint32_t permuted_heads_kv = 0;  // of k
};

// A factor as it stands in its file: rows of numbers, one after another.
struct StoredMatrix {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  NumberFormat format = NumberFormat::f32;
  std::uint64_t offset = 0;  // in the file

  std::uint64_t bytes() const { return encoded_bytes(format, rows * columns); }
};

struct LoraTensor {
  std::uint32_t layer = 0;
  Projection projection = Projection::attn_q;
  float scale = 1;  // alpha / rank, or alpha / sqrt(rank) for rank-stabilised LoRA
  StoredMatrix a;   // [rank][n_in]
  StoredMatrix b;   // [n_out][rank]
  // B's rows are to be interleaved within each of so many heads, see BaseShape::permuted_heads. 0: they stay.
  std::uint32_t interleaved_heads = 0;

  std::uint32_t rank() const { return static_cast<std::uint32_t>(a.rows); }
  std::uint32_t n_in() const { return static_cast<std::uint32_t>(a.columns); }
  std::uint32_t n_out() const { return static_cast<std::uint32_t>(b.rows); }
};

struct LoraFile {
  std::string name;  // what the file calls itself, else the file's own name
  std::string base;  // what the file says of its base model; may be empty
  std::vector<LoraTensor> tensors;
  std::shared_ptr<const ByteSource> file;  // where their numbers are
};

// Reads what the header says of a .gguf file, a .safetensors file with adapter_config.json beside it, or a folder that
// holds both. Blocks on the disk. invalid_request says what is wrong or does not fit: "blk.3.attn_q: the adapter's A
// has 896 columns, the base 1024". Nothing of a file is believed: sizes and offsets are checked here, numbers where
// they are used (image.h). io_failed: it cannot be read.
Result<LoraFile> read_lora_file(const std::filesystem::path& path, const BaseShape& base);

}  // namespace molly::engine
