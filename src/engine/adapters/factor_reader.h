#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/error.h"
#include "engine/adapters/lora_file.h"
#include "engine/kernels/lora.h"

namespace molly::engine {

// Reads the factors of a file, one at a time, and writes them as the rows that kernels take. What it reads into is used
// again for the next factor and stays in the processor's caches.
class FactorReader {
 public:
  explicit FactorReader(const ByteSource& file) : file_(file) {}

  // One row for each rank, each with room for row_bytes(type, n_in or n_out). invalid_request for numbers that are not
  // finite, or too large for half precision; io_failed.
  Result<void> write_a(const LoraTensor& tensor, FactorType type, std::span<std::byte* const> rows);
  // Transposed.
  Result<void> write_b(const LoraTensor& tensor, FactorType type, std::span<std::byte* const> rows);

 private:
  Result<void> read(const StoredMatrix& matrix);
  void interleave(const LoraTensor& tensor);
  Result<std::span<const float>> decoded(const LoraTensor& tensor, const StoredMatrix& matrix, FactorType type);
  Result<std::span<const std::uint16_t>> halves(const LoraTensor& tensor);

  const ByteSource& file_;
  std::vector<std::uint8_t> stored_;
  std::vector<std::uint8_t> ordered_;
  std::vector<float> numbers_;
  std::vector<float> transposed_;
};

}  // namespace molly::engine
