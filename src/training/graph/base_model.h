#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "core/error.h"
#include "gguf/model_file.h"
#include "training/graph/arena.h"
#include "training/graph/decoder.h"

namespace molly::training {

// The frozen base: its weights as they lie in the file, mapped and never written.
class BaseModel {
 public:
  // invalid_request: no model, an architecture or an operation that cannot be trained (the sentence says which), a
  // tensor missing or of another shape; io_failed; overloaded.
  static Result<std::unique_ptr<BaseModel>> open(const std::filesystem::path& path);
  ~BaseModel();
  BaseModel(const BaseModel&) = delete;
  BaseModel& operator=(const BaseModel&) = delete;

  const Decoder& decoder() const { return decoder_; }
  const gguf::ModelFile& file() const { return file_; }

 private:
  BaseModel() = default;
  Result<void> map(const std::filesystem::path& path);
  Result<void> find_tensors();

  gguf::ModelFile file_;
  Decoder decoder_;
  void* memory_ = nullptr;
  engine::Context context_;
  engine::Buffer buffer_;
};

struct FactorSettings {
  std::uint32_t rank = 8;
  float alpha = 16;
  std::vector<engine::Projection> targets;
  std::uint64_t seed = 1;
};

// Shapes of A and B for every layer and target, in pairs: "blk.N.attn_q.weight.lora_a" [n_in, rank], then
// "...lora_b" [rank, n_out].
std::vector<TensorShape> lora_shapes(const Decoder& decoder, const FactorSettings& settings);
// `decoder` with the factors of `arena`, which lora_shapes() described; they become ggml's parameters. A is drawn from
// the normal distribution of variance 1 / n_in, B is zero (Hu et al., section 4.1), so that training begins at the
// base.
Decoder with_lora(const Decoder& decoder, const FactorSettings& settings, const Arena& arena);

}  // namespace molly::training
