#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/error.h"
#include "gguf/tensor_type.h"

// What a GGUF file says of itself, read without any model runtime and without touching the weights.
// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3, little-endian.
namespace molly::gguf {

// An array's elements are kept only when they are few and small (see Limits); its length always.
struct ArrayValue {
  std::uint64_t count = 0;
  std::vector<std::string> strings;    // kept elements of string arrays
  std::vector<std::int64_t> integers;  // kept elements of integer and boolean arrays
  bool operator==(const ArrayValue&) const = default;
};

using Value = std::variant<bool, std::uint64_t, std::int64_t, double, std::string, ArrayValue>;

struct Tensor {
  std::string name;
  std::array<std::uint64_t, 4> dimensions{1, 1, 1, 1};  // ne: innermost first
  std::uint32_t type = 0;                               // a TensorType, or a number that this version does not know
  std::uint64_t offset = 0;                             // from the start of the data section
  std::uint64_t bytes = 0;                              // of an unknown type: up to the next tensor
};

struct ModelFile {
  std::uint32_t version = 0;
  std::map<std::string, Value, std::less<>> metadata;
  std::vector<Tensor> tensors;
  std::uint64_t data_offset = 0;   // where the data section starts in the file
  std::uint64_t tensor_bytes = 0;  // sum over all tensors
  std::uint64_t file_bytes = 0;

  std::string architecture;          // general.architecture
  std::string name;                  // general.name, or empty
  std::string quantization;          // of most weight bytes, e.g. "Q4_K"; "F16"
  std::uint64_t parameters = 0;      // elements in all tensors
  std::uint64_t context_length = 0;  // trained length in tokens; 0: not said
  std::uint64_t embedding_length = 0;
  std::uint64_t layers = 0;
  std::uint64_t heads = 0;
  std::uint64_t vocabulary = 0;  // tokens
  std::string chat_template;     // empty: none

  // "{architecture}.{key}" or "{key}" as a whole number; nothing when absent or not a number.
  std::optional<std::uint64_t> number(std::string_view key) const;
  std::optional<std::string> text(std::string_view key) const;
  // A number for each layer: one value for all, or an array with one each. `fallback` where absent.
  std::vector<std::uint64_t> per_layer(std::string_view key, std::uint64_t fallback) const;
};

// Bounds on what a file may make us allocate or do.
struct Limits {
  std::uint64_t max_header_bytes = 512ULL << 20;  // read, most of it skipped
  std::uint64_t max_kept_bytes = 64ULL << 20;     // of keys, names and texts together
  std::uint64_t max_keys = 65'536;
  std::uint64_t max_tensors = 1'000'000;
  std::uint64_t max_string_bytes = 16ULL << 20;
  std::uint64_t max_kept_elements = 4096;  // of longer arrays only the length is kept
};

// Reads the header of a file. Blocks on the disk. ErrorCode::invalid_request says what is wrong with the file
// (also when it is shorter than its tensors need), ErrorCode::io_failed that it cannot be read.
Result<ModelFile> read_model_file(const std::filesystem::path& path, const Limits& limits = {});

// Fills as much of the span as there is from that position on, and says how many bytes that was.
using Source = std::function<std::size_t(std::uint64_t position, std::span<std::uint8_t> into)>;

// The same from any source; `file_bytes` is the whole file's length.
Result<ModelFile> parse_model_file(const Source& source, std::uint64_t file_bytes, const Limits& limits = {});

// The same from bytes that start as the file does. Pure.
Result<ModelFile> parse_model_file(std::span<const std::uint8_t> header, std::uint64_t file_bytes,
                                   const Limits& limits = {});

}  // namespace molly::gguf
