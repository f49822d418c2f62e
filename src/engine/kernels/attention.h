#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/kernels/isa.h"
#include "engine/kernels/lora.h"

// Causal attention of a mixed batch over keys and values in pages (Kwon et al., PagedAttention, arXiv 2309.06180,
// section 4), for decode and prefill, one pass with an online softmax (Milakov and Gimelshein, arXiv 1805.02867).
namespace molly::engine {

using PageId = std::int32_t;

enum class KvType : std::uint8_t { f16, q8_0 };

// Where keys and values of one layer are. In page p, token i (0 <= i < page_tokens) has its key for all heads at
// base + p * page_stride + key_offset + i * row_bytes, its value at value_offset likewise. A row is n_head_kv *
// head_dim numbers.
struct PagedKv {
  std::byte* base = nullptr;
  std::size_t page_stride = 0;  // bytes
  std::size_t key_offset = 0;   // bytes, of this layer
  std::size_t value_offset = 0;
  std::size_t row_bytes = 0;
  std::uint32_t page_tokens = 64;
  KvType type = KvType::f16;
  std::uint32_t n_head_kv = 0;
  std::uint32_t head_dim = 0;  // 32 to 256, a multiple of 32
};

// Consecutive rows of the batch that are consecutive tokens of one sequence.
struct SequenceRows {
  std::uint32_t first_row = 0;
  std::uint32_t rows = 0;
  std::uint32_t first_position = 0;  // of the first row; each row sees positions 0 to its own
  std::span<const PageId> pages;     // of the whole sequence
};

// Stores the batch's new keys (or values) into their pages: source is [rows][n_head_kv * head_dim]. Every thread calls
// it.
void store_rows(Isa isa, const PagedKv& kv, std::size_t offset_in_page, std::span<const SequenceRows> sequences,
                ConstRows source, int thread, int threads);

// A tensor [rows][heads][head_dim] of floats with strides in bytes.
struct HeadRows {
  float* data = nullptr;
  std::size_t row_stride = 0;
  std::size_t head_stride = 0;
};

inline float* head_row(const HeadRows& rows, std::size_t row, std::size_t head) {
  return reinterpret_cast<float*>(reinterpret_cast<std::byte*>(rows.data) + row * rows.row_stride +
                                  head * rows.head_stride);
}

// output = softmax(scale * q k^T, causal) v, query head h reading key-value head h / (n_head / n_head_kv). Every thread
// calls it. Numbers are accumulated in F32; a row's result does not depend on the other rows.
void attend(Isa isa, const PagedKv& kv, std::span<const SequenceRows> sequences, HeadRows queries, std::uint32_t n_head,
            float scale, HeadRows output, int thread, int threads);

}  // namespace molly::engine
