#include "engine/kernels/attention.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <memory>
#include <new>

#include "engine/kernels/kernel_set.h"
#include "engine/kernels/share.h"

namespace molly::engine {
namespace {

// Floats of queries that one block keeps, and as many of weighted values: together they fit the second cache level with
// a tile of keys and values.
constexpr std::uint32_t block_floats = 8192;
constexpr std::uint32_t block_vectors = 64;

// One thread's, as large as its largest block so far.
class Scratch {
 public:
  float* reserve(std::size_t floats) {
    if (floats > size_) {
      data_.reset(static_cast<float*>(::operator new(floats * sizeof(float), alignment)));
      size_ = floats;
    }
    return data_.get();
  }

 private:
  static constexpr std::align_val_t alignment{64};
  struct Free {
    void operator()(float* data) const { ::operator delete(data, alignment); }
  };
  std::unique_ptr<float, Free> data_;
  std::size_t size_ = 0;
};

HeadRows from_row(const HeadRows& rows, std::uint32_t row) {
  return {head_row(rows, row, 0), rows.row_stride, rows.head_stride};
}

std::uint32_t rows_per_block(const PagedKv& kv, std::uint32_t group) {
  return std::max(1U, std::min(block_vectors, block_floats / kv.head_dim) / group);
}

// A block's time for one key-value head: reading a token costs about as much as comparing it with eight queries.
std::uint64_t weight_of(const SequenceRows& sequence, std::uint32_t row, std::uint32_t rows, std::uint32_t group) {
  return std::uint64_t{8 + rows * group} * (sequence.first_position + row + rows);
}

std::uint64_t weight_of(const SequenceRows& sequence, std::uint32_t block_rows, std::uint32_t group) {
  std::uint64_t total = 0;
  for (std::uint32_t row = 0; row < sequence.rows; row += block_rows) {
    total += weight_of(sequence, row, std::min(block_rows, sequence.rows - row), group);
  }
  return total;
}

// Heads of a block side by side, so that a tile's rows are read in the order of memory, as many as the caches hold.
void attend_heads(const KernelSet& kernels, AttentionBlock block, std::uint32_t end_head) {
  thread_local Scratch scratch;
  const std::size_t per_head = block.query_vectors() * block.kv->head_dim;
  const auto together = static_cast<std::uint32_t>(std::max<std::size_t>(1, block_floats / per_head));
  for (; block.first_head < end_head; block.first_head += block.heads) {
    block.heads = std::min(together, end_head - block.first_head);
    kernels.attend(block, scratch.reserve(attention_scratch(block.heads, block.query_vectors(), block.kv->head_dim)));
  }
}

}  // namespace

void store_rows(Isa isa, const PagedKv& kv, std::size_t offset_in_page, std::span<const SequenceRows> sequences,
                ConstRows source, int thread, int threads) {
  std::uint64_t rows = 0;
  for (const SequenceRows& sequence : sequences) rows += sequence.rows;
  const Share share = share_of(rows, thread, threads);
  const KernelSet& kernels = kernel_set(isa);
  std::uint64_t passed = 0;
  for (const SequenceRows& sequence : sequences) {
    const std::uint32_t end = share.reached(passed, 1, sequence.rows);
    for (std::uint32_t row = share.skipped(passed, 1, sequence.rows); row < end; ++row) {
      const std::uint32_t position = sequence.first_position + row;
      const auto page = static_cast<std::size_t>(sequence.pages[position / kv.page_tokens]);
      kernels.store_row(row_of(source, sequence.first_row + row), std::size_t{kv.n_head_kv} * kv.head_dim, kv.type,
                        kv.base + page * kv.page_stride + offset_in_page + position % kv.page_tokens * kv.row_bytes);
    }
    passed += sequence.rows;
  }
}

void attend(Isa isa, const PagedKv& kv, std::span<const SequenceRows> sequences, HeadRows queries, std::uint32_t n_head,
            float scale, HeadRows output, int thread, int threads) {
  assert(kv.head_dim % 32 == 0 && kv.head_dim <= 256 && n_head % kv.n_head_kv == 0);
  const std::uint32_t group = n_head / kv.n_head_kv;
  const std::uint32_t block_rows = rows_per_block(kv, group);
  std::uint64_t total = 0;
  for (const SequenceRows& sequence : sequences) total += weight_of(sequence, block_rows, group) * kv.n_head_kv;
  const Share share = share_of(total, thread, threads);
  std::uint64_t passed = 0;
  for (const SequenceRows& sequence : sequences) {
    for (std::uint32_t row = 0; row < sequence.rows; row += block_rows) {
      const std::uint32_t rows = std::min(block_rows, sequence.rows - row);
      const std::uint64_t weight = weight_of(sequence, row, rows, group);
      attend_heads(kernel_set(isa),
                   {.kv = &kv,
                    .pages = sequence.pages,
                    .rows = rows,
                    .first_position = sequence.first_position + row,
                    .group = group,
                    .first_head = share.skipped(passed, weight, kv.n_head_kv),
                    .scale = scale,
                    .queries = from_row(queries, sequence.first_row + row),
                    .output = from_row(output, sequence.first_row + row)},
                   share.reached(passed, weight, kv.n_head_kv));
      passed += weight * kv.n_head_kv;
    }
  }
}

}  // namespace molly::engine
