#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "core/error.h"
#include "engine/adapters/lora_file.h"

// The file formats behind read_lora_file(), over any source of bytes. Errors are invalid_request, and the
// source's own.
namespace molly::engine {

// llama.cpp's form, as its convert_lora_to_gguf.py writes it.
Result<LoraFile> parse_lora_gguf(std::shared_ptr<const ByteSource> file, const BaseShape& base);

// PEFT's form: adapter_model.safetensors and adapter_config.json.
Result<LoraFile> parse_lora_peft(std::shared_ptr<const ByteSource> weights, std::string_view config,
                                 const BaseShape& base);

}  // namespace molly::engine
