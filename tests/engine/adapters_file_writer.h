#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../gguf/file_writer.h"
#include "engine/adapters/lora_file.h"
#include "engine/adapters/number_format.h"

// Adapter files for tests, right or wrong on purpose.
namespace molly::engine {

// Two layers, two query heads and one key-value head of four.
inline BaseShape small_base(std::string architecture = "llama") {
  return {.architecture = std::move(architecture),
          .layers = 2,
          .projections = {{8, 8}, {8, 4}, {8, 4}, {8, 8}, {8, 12}, {8, 12}, {12, 8}}};
}

// 0.5, 1, 1.5, ...: exact in every format.
inline std::vector<float> counting(std::size_t count, float first = 0.5F) {
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = first + 0.5F * static_cast<float>(i);
  return numbers;
}

inline std::vector<float> numbers_of(const LoraFile& file, const StoredMatrix& matrix) {
  std::vector<std::uint8_t> bytes(matrix.bytes());
  file.file->read(matrix.offset, bytes).value();
  std::vector<float> numbers(matrix.rows * matrix.columns);
  decode(matrix.format, bytes, numbers);
  return numbers;
}

// A matrix in F32, row-major.
struct NamedMatrix {
  std::string name;
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::vector<float> numbers;
};

inline NamedMatrix matrix(std::string name, std::uint64_t rows, std::uint64_t columns, float first = 0.5F) {
  return {std::move(name), rows, columns, counting(rows * columns, first)};
}

struct GgufAdapter {
  std::string type = "adapter";
  std::string adapter_type = "lora";
  std::string architecture = "llama";
  float alpha = 4;
  std::vector<NamedMatrix> matrices;

  std::shared_ptr<const ByteSource> source() const { return bytes_in_memory(bytes()); }

  std::vector<std::uint8_t> bytes() const {
    gguf::FileWriter file;
    file.start(matrices.size(), 5);
    file.string_entry("general.type", type).string_entry("general.architecture", architecture);
    file.string_entry("general.name", "Test adapter").string_entry("adapter.type", adapter_type);
    file.key("adapter.lora.alpha", 6).number(alpha);
    std::uint64_t offset = 0;
    for (const auto& matrix : matrices) {
      file.tensor(matrix.name, {matrix.columns, matrix.rows}, 0, offset);
      offset += (matrix.numbers.size() * sizeof(float) + 31) / 32 * 32;
    }
    for (const auto& matrix : matrices) {
      file.data(0);
      for (const float number : matrix.numbers) file.number(number);
    }
    return file.bytes();
  }
};

inline GgufAdapter small_gguf_adapter() {
  return {.matrices = {matrix("blk.0.attn_q.weight.lora_a", 2, 8), matrix("blk.0.attn_q.weight.lora_b", 8, 2),
                       matrix("blk.1.ffn_down.weight.lora_a", 1, 12), matrix("blk.1.ffn_down.weight.lora_b", 8, 1)}};
}

// A safetensors file of this header and these numbers.
inline std::vector<std::uint8_t> safetensors(std::string_view header, const std::vector<float>& numbers) {
  std::vector<std::uint8_t> bytes(8 + header.size() + numbers.size() * sizeof(float));
  const std::uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, sizeof length);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  if (!numbers.empty()) std::memcpy(bytes.data() + 8 + length, numbers.data(), numbers.size() * sizeof(float));
  return bytes;
}

inline std::vector<std::uint8_t> safetensors(const std::vector<NamedMatrix>& matrices) {
  std::string header = R"({"__metadata__":{"format":"pt"})";
  std::vector<float> numbers;
  for (const auto& matrix : matrices) {
    const auto begin = numbers.size() * sizeof(float);
    numbers.insert(numbers.end(), matrix.numbers.begin(), matrix.numbers.end());
    header += ",\"" + matrix.name + R"(":{"dtype":"F32","shape":[)" + std::to_string(matrix.rows) + "," +
              std::to_string(matrix.columns) + R"(],"data_offsets":[)" + std::to_string(begin) + "," +
              std::to_string(numbers.size() * sizeof(float)) + "]}";
  }
  return safetensors(header + "}", numbers);
}

inline std::vector<NamedMatrix> small_peft_matrices() {
  const std::string layers = "base_model.model.model.layers.";
  return {matrix(layers + "0.self_attn.q_proj.lora_A.weight", 2, 8),
          matrix(layers + "0.self_attn.q_proj.lora_B.weight", 8, 2),
          matrix(layers + "1.mlp.down_proj.lora_A.weight", 2, 12),
          matrix(layers + "1.mlp.down_proj.lora_B.weight", 8, 2)};
}

inline constexpr std::string_view small_peft_config =
    R"({"peft_type":"LORA","base_model_name_or_path":"some/base","r":2,"lora_alpha":4,"bias":"none",)"
    R"("modules_to_save":null,"use_dora":false,"target_modules":["q_proj","down_proj"]})";

}  // namespace molly::engine
