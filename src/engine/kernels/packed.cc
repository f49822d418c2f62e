#include "engine/kernels/packed.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/os/processors.h"
#include "engine/kernels/isa.h"
#include "engine/kernels/packed_layout.h"
#include "engine/kernels/share.h"

namespace molly::engine {
namespace {

using Quants = std::uint8_t[256];

// Blocks as ggml-common.h defines them.
constexpr std::size_t bytes_of_block(PackedType type) {
  switch (type) {
    case PackedType::q4_0: return 2 + 16;
    case PackedType::q8_0: return 2 + 32;
    case PackedType::q4_k: return 4 + 12 + 128;
    case PackedType::q6_k: return 128 + 64 + 16 + 2;
  }
  return 0;
}

std::uint8_t byte(const std::byte* at) { return static_cast<std::uint8_t>(*at); }

// Low nibbles are the first 16 inputs of 32, high ones the others: two inputs to a byte, as Q4_0 has it.
void place_nibbles(const std::uint8_t* pairs, std::uint32_t output, std::byte* quants) {
  for (std::size_t j = 0; j < 4; ++j) std::memcpy(quants + j * 64 + output * std::size_t{4}, pairs + 4 * j, 4);
}

void place_bytes(const std::uint8_t* numbers, std::uint32_t output, std::byte* quants) {
  for (std::size_t j = 0; j < 8; ++j) std::memcpy(quants + j * 64 + output * std::size_t{4}, numbers + 4 * j, 4);
}

void place_half(const std::byte* half, std::uint32_t output, std::byte* scales) {
  std::memcpy(scales + output * std::size_t{2}, half, 2);
}

void pack_q4_0(const std::byte* block, std::uint32_t output, std::byte* quants, std::byte* scales) {
  place_half(block, output, scales);
  place_nibbles(reinterpret_cast<const std::uint8_t*>(block + 2), output, quants);
}

void pack_q8_0(const std::byte* block, std::uint32_t output, std::byte* quants, std::byte* scales) {
  place_half(block, output, scales);
  std::uint8_t numbers[32];
  for (std::size_t i = 0; i < 32; ++i) numbers[i] = byte(block + 2 + i) ^ 0x80U;
  place_bytes(numbers, output, quants);
}

// Six bits each, as ggml's get_scale_min_k4 reads them.
void scale_and_minimum(const std::byte* packed, std::size_t i, std::byte& scale, std::byte& minimum) {
  if (i < 4) {
    scale = packed[i] & std::byte{63};
    minimum = packed[i + 4] & std::byte{63};
    return;
  }
  scale = (packed[i + 4] & std::byte{15}) | (packed[i - 4] >> 6) << 4;
  minimum = (packed[i + 4] >> 4) | (packed[i] >> 6) << 4;
}

void pack_q4_k(const std::byte* block, std::uint32_t output, std::byte* quants, std::byte* scales) {
  place_half(block, output, scales);
  place_half(block + 2, output, scales + 32);
  const auto* numbers = reinterpret_cast<const std::uint8_t*>(block + 16);
  for (std::size_t s = 0; s < 8; ++s) {
    std::byte* of_sub_block = scales + 64 + s * 32;
    scale_and_minimum(block + 4, s, of_sub_block[output], of_sub_block[16 + output]);
    const std::uint8_t* bytes = numbers + s / 2 * 32;
    const unsigned shift = s % 2 * 4;
    std::uint8_t pairs[16];
    for (std::size_t i = 0; i < 16; ++i) {
      const unsigned low = bytes[i] >> shift & 15U;
      const unsigned high = bytes[16 + i] >> shift & 15U;
      pairs[i] = static_cast<std::uint8_t>(low | high << 4);
    }
    place_nibbles(pairs, output, quants + s * 256);
  }
}

void pack_q6_k(const std::byte* block, std::uint32_t output, std::byte* quants, std::byte* scales) {
  place_half(block + 208, output, scales);
  for (std::size_t i = 0; i < 16; ++i) scales[32 + i * 16 + output] = block[192 + i];
  Quants numbers;
  for (std::size_t half = 0; half < 2; ++half) {
    const std::byte* low = block + half * 64;
    const std::byte* high = block + 128 + half * 32;
    std::uint8_t* out = numbers + half * 128;
    for (std::size_t i = 0; i < 32; ++i) {
      const unsigned bits = byte(high + i);
      out[i] = static_cast<std::uint8_t>((byte(low + i) & 15U) | (bits & 3U) << 4);
      out[32 + i] = static_cast<std::uint8_t>((byte(low + 32 + i) & 15U) | (bits >> 2 & 3U) << 4);
      out[64 + i] = static_cast<std::uint8_t>(byte(low + i) >> 4 | (bits >> 4 & 3U) << 4);
      out[96 + i] = static_cast<std::uint8_t>(byte(low + 32 + i) >> 4 | bits >> 6 << 4);
    }
  }
  for (std::size_t s = 0; s < 8; ++s) place_bytes(numbers + s * 32, output, quants + s * 512);
}

auto packer_of(PackedType type) {
  switch (type) {
    case PackedType::q4_0: return pack_q4_0;
    case PackedType::q8_0: return pack_q8_0;
    case PackedType::q4_k: return pack_q4_k;
    case PackedType::q6_k: break;
  }
  return pack_q6_k;
}

std::uint32_t groups_of(std::uint32_t n_out) { return (n_out + outputs_per_group - 1) / outputs_per_group; }

const PackedKernels* kernels() {
#if defined(__x86_64__)
  return &vnni_kernels;
#else
  return nullptr;
#endif
}

}  // namespace

bool can_multiply_packed() { return best_isa() == Isa::avx512 && base::multiplies_bytes(); }

std::uint32_t block_of(PackedType type) { return layout_of(type).block; }

std::size_t packed_bytes(PackedType type, std::uint32_t n_in, std::uint32_t n_out) {
  return groups_of(n_out) * layout_of(type).bytes_of_group(n_in);
}

void pack(PackedType type, std::span<const std::byte> rows, std::uint32_t n_in, std::uint32_t n_out, std::byte* packed,
          std::uint32_t part, std::uint32_t parts) {
  const PackedLayout layout = layout_of(type);
  const std::size_t blocks = n_in / layout.block;
  const std::size_t row_bytes = blocks * bytes_of_block(type);
  assert(rows.size() == row_bytes * n_out);
  const auto pack_block = packer_of(type);
  const Share share = share_of(groups_of(n_out), static_cast<int>(part), static_cast<int>(parts));
  for (std::uint64_t group = share.begin; group < share.end; ++group) {
    std::byte* quants = packed + group * layout.bytes_of_group(n_in);
    std::byte* scales = quants + layout.quants_of_group(n_in);
    const auto first = static_cast<std::uint32_t>(group) * outputs_per_group;
    for (std::uint32_t output = 0; output < std::min(outputs_per_group, n_out - first); ++output) {
      const std::byte* row = rows.data() + (first + output) * row_bytes;
      for (std::size_t b = 0; b < blocks; ++b) {
        pack_block(row + b * bytes_of_block(type), output, quants + b * (layout.block / sub_block) * layout.quant_bytes,
                   scales + b * layout.scale_bytes);
      }
    }
  }
}

std::size_t activation_bytes(PackedType type, std::uint32_t n_in, std::uint32_t rows) {
  return (rows + rows_per_tile - 1) / rows_per_tile * activations_of(type).bytes(n_in);
}

void quantize_activations(const PackedMatrix& matrix, ConstRows x, std::uint32_t rows, std::byte* activations,
                          int thread, int threads) {
  const std::size_t tile_bytes = activations_of(matrix.type).bytes(matrix.n_in);
  const Share share = share_of(rows, thread, threads);
  for (std::uint64_t row = share.begin; row < share.end; ++row) {
    kernels()->quantize(matrix.type, row_of(x, row), matrix.n_in, activations + row / rows_per_tile * tile_bytes,
                        static_cast<std::uint32_t>(row % rows_per_tile));
  }
}

void multiply_packed(const PackedMatrix& matrix, const std::byte* activations, std::uint32_t rows, MutableRows y,
                     int thread, int threads, std::span<const MemoryRun> read_next) {
  const PackedLayout layout = layout_of(matrix.type);
  const std::size_t tile_bytes = activations_of(matrix.type).bytes(matrix.n_in);
  const Share share = share_of(groups_of(matrix.n_out), thread, threads);
  const std::size_t tiles = (rows + rows_per_tile - 1) / rows_per_tile;
  Prefetcher prefetcher(read_next, static_cast<std::size_t>(thread), static_cast<std::size_t>(threads),
                        (share.end - share.begin) * tiles * (matrix.n_in / sub_block));
  for (std::uint64_t group = share.begin; group < share.end; ++group) {
    const std::byte* quants = matrix.data + group * layout.bytes_of_group(matrix.n_in);
    const auto first = static_cast<std::uint32_t>(group) * outputs_per_group;
    for (std::uint32_t row = 0; row < rows; row += rows_per_tile) {
      kernels()->multiply(matrix.type,
                          {.quants = quants,
                           .scales = quants + layout.quants_of_group(matrix.n_in),
                           .n_in = matrix.n_in,
                           .outputs = std::min(outputs_per_group, matrix.n_out - first),
                           .activations = activations + row / rows_per_tile * tile_bytes,
                           .y = {row_of(y, row) + first, y.stride},
                           .prefetcher = &prefetcher},
                          std::min(rows_per_tile, rows - row));
    }
  }
}

}  // namespace molly::engine
