#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "engine/adapters/lora_file.h"
#include "engine/kernels/packed.h"
#include "engine/model/backend.h"
#include "engine/model/config.h"
#include "gguf/model_file.h"

namespace molly::engine {

// A matrix to multiply with.
struct Matrix {
  ggml_tensor* tensor = nullptr;         // [n_in, n_out]; without data where it is packed
  const PackedMatrix* packed = nullptr;  // null: ggml multiplies
};

// One or several projections of the same input in one matrix, rows concatenated.
struct Linear {
  struct Segment {
    Projection projection = Projection::attn_q;
    std::uint32_t first = 0;  // output column
    std::uint32_t columns = 0;
  };
  Matrix weight;
  ggml_tensor* bias = nullptr;  // [n_out] or null
  std::vector<Segment> segments;
};

struct LayerWeights {
  ggml_tensor* attn_norm = nullptr;  // [n_embd]
  ggml_tensor* ffn_norm = nullptr;
  ggml_tensor* q_norm = nullptr;  // [head_dim] or null
  ggml_tensor* k_norm = nullptr;
  std::vector<Linear> qkv;  // one where the types agree
  Linear attn_output;
  std::vector<Linear> gate_up;
  Linear ffn_down;
};

struct Weights {
  ggml_tensor* token_embd = nullptr;    // [n_embd, n_vocab], plain: rows are read one by one
  ggml_tensor* output_norm = nullptr;   // [n_embd]
  Matrix output;                        // [n_embd, n_vocab]; a second copy of token_embd where tied and repacked
  ggml_tensor* rope_factors = nullptr;  // [rope_dims / 2] or null
  std::vector<LayerWeights> layers;
};

// How an architecture says which of the file's tensors it uses, and as what. Nothing is read before finish().
class WeightMap {
 public:
  WeightMap(const Backend& backend, const gguf::ModelFile& file);
  ~WeightMap();
  WeightMap(const WeightMap&) = delete;
  WeightMap& operator=(const WeightMap&) = delete;

  // A vector or table that stays as it is in the file. Its shape is checked; the first mistake is kept for load().
  ggml_tensor* plain(const std::string& name, std::int64_t ne0, std::int64_t ne1 = 1);
  ggml_tensor* optional_plain(const std::string& name, std::int64_t ne0, std::int64_t ne1 = 1);
  // A matrix to multiply with: packed or repacked where that is faster.
  Matrix matrix(const std::string& name, std::int64_t n_in, std::int64_t n_out);

  struct Part {
    Projection projection = Projection::attn_q;
    std::int64_t n_in = 0;
    std::int64_t n_out = 0;
  };
  // Projections of one layer that share their input, fused as far as their types agree. "blk.N.NAME.weight" and, where
  // the file has them, "blk.N.NAME.bias".
  std::vector<Linear> linears(std::uint32_t layer, std::initializer_list<Part> parts);
  Linear linear(std::uint32_t layer, Part part);

  bool has(const std::string& name) const;

 private:
  friend class LoadedWeights;
  struct State;
  std::unique_ptr<State> state_;
};

// Owns the memory behind Weights: the mapped file for what stays as it is, buffers for what was fused or repacked.
class LoadedWeights {
 public:
  // Maps `path`, whose header `map` was made from, and reads what `map` collected. Blocks. invalid_request: a tensor is
  // missing, has a wrong shape or a type that ggml cannot compute with; io_failed; overloaded: out of memory.
  static Result<std::unique_ptr<LoadedWeights>> load(const std::filesystem::path& path, WeightMap& map,
                                                     const Backend& backend);
  ~LoadedWeights();
  LoadedWeights(const LoadedWeights&) = delete;
  LoadedWeights& operator=(const LoadedWeights&) = delete;

  std::uint64_t mapped_bytes() const;
  std::uint64_t copied_bytes() const;  // fused or repacked

 private:
  struct State;
  explicit LoadedWeights(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace molly::engine
