#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "engine/adapters/lora_file.h"

namespace molly::training {

// The two factors of one projection: its weight gains alpha / rank * B A.
struct LoraFactor {
  std::uint32_t layer = 0;
  engine::Projection projection = engine::Projection::attn_q;
  std::uint32_t rank = 0;
  std::uint32_t n_in = 0;
  std::uint32_t n_out = 0;
  std::vector<float> a;  // [rank][n_in]
  std::vector<float> b;  // [n_out][rank], in the order of the base's own rows
};

// An adapter's numbers in memory, whatever its file's form was.
struct LoraWeights {
  std::string name;
  std::string base_name;  // may be empty
  float alpha = 0;
  std::vector<LoraFactor> factors;
};

// Reads a GGUF adapter or what PEFT wrote. Files that scale their projections differently come out with one alpha and
// their B scaled for the difference. Blocks on the disk. Errors as from engine::read_lora_file; invalid_request for
// numbers that are not finite.
Result<LoraWeights> read_lora_weights(const std::filesystem::path& path, const engine::BaseShape& base);

}  // namespace molly::training
