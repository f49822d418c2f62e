#pragma once

#include <filesystem>

#include "core/error.h"
#include "engine/adapters/lora_file.h"
#include "training/adapter/lora_weights.h"

namespace molly::training {

// How factors are stored.
enum class FactorPrecision : std::uint8_t { f32, f16 };

// Both write temporary files, synced and then renamed: whatever goes wrong, a file of that name is whole, or is the one
// that was there before. They block on the disk. invalid_request: a factor does not fit the base, or holds numbers that
// are not finite or too large for half precision; io_failed.

// llama.cpp's form, as its convert_lora_to_gguf.py writes it.
Result<void> write_gguf_adapter(const std::filesystem::path& path, const LoraWeights& weights,
                                const engine::BaseShape& base, FactorPrecision precision);

// PEFT's form, in F32: adapter_model.safetensors and adapter_config.json in a folder, which is made where it is
// missing. `base_name` is what PEFT would load the base by; empty: what the adapter says.
Result<void> write_peft_adapter(const std::filesystem::path& folder, const LoraWeights& weights,
                                const engine::BaseShape& base, std::string base_name);

// What both check first.
Result<void> check_weights(const LoraWeights& weights, const engine::BaseShape& base, FactorPrecision precision);

}  // namespace molly::training
