#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/error.h"
#include "engine/adapters/lora_file.h"

// The file formats behind read_lora_file(), as pure functions over whole files in memory. Errors are invalid_request.
namespace molly::engine {

// llama.cpp's form, as its convert_lora_to_gguf.py writes it.
Result<LoraFile> parse_lora_gguf(std::span<const std::uint8_t> file, const BaseShape& base);

// PEFT's form: adapter_model.safetensors and adapter_config.json.
Result<LoraFile> parse_lora_peft(std::span<const std::uint8_t> weights, std::string_view config, const BaseShape& base);

}  // namespace molly::engine
