#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/kernels/lora.h"
#include "engine/kernels/prefetcher.h"

// Products of quantized weights and activations for a few to hundreds of rows, with the byte dot products of AVX-512
// (VNNI). ggml's own kernels do the same sums: activations are quantized as ggml quantizes them, so that only the
// order of floating-point additions differs.
namespace molly::engine {

// In ggml's block formats.
enum class PackedType : std::uint8_t { q4_0, q8_0, q4_k, q6_k };

// Whether this processor has what the kernels need.
bool can_multiply_packed();

// A weight matrix [n_in, n_out], laid out so that a register holds the same four inputs of 16 outputs.
struct PackedMatrix {
  PackedType type = PackedType::q4_0;
  std::uint32_t n_in = 0;
  std::uint32_t n_out = 0;
  const std::byte* data = nullptr;  // packed_bytes() of them, 64-byte aligned
};

// Inputs of a matrix of this type are a multiple of this.
std::uint32_t block_of(PackedType type);
std::size_t packed_bytes(PackedType type, std::uint32_t n_in, std::uint32_t n_out);

// `rows` are n_out rows of blocks as a GGUF file has them. Part `part` of `parts` of the work; they are independent.
void pack(PackedType type, std::span<const std::byte> rows, std::uint32_t n_in, std::uint32_t n_out, std::byte* packed,
          std::uint32_t part = 0, std::uint32_t parts = 1);

// Bytes of so many rows of quantized activations.
std::size_t activation_bytes(PackedType type, std::uint32_t n_in, std::uint32_t rows);

// Both are called by every thread of a pool at once, each with its number; between the two all threads must have met.
void quantize_activations(const PackedMatrix& matrix, ConstRows x, std::uint32_t rows, std::byte* activations,
                          int thread, int threads);
// y[row][output] = sum over inputs. `read_next`: what the threads read when they are done, fetched meanwhile.
void multiply_packed(const PackedMatrix& matrix, const std::byte* activations, std::uint32_t rows, MutableRows y,
                     int thread, int threads, std::span<const MemoryRun> read_next = {});

}  // namespace molly::engine
