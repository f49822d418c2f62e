#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "engine/kernels/inline.h"
#include "engine/kernels/kernel_set.h"
#include "engine/kernels/lookahead.h"
#include "engine/kernels/row_formats.h"
#include "engine/kernels/softmax_body.h"
#include "engine/kernels/tile_body.h"

// One block of query rows against the pages of its sequence, tile by tile, for any Vector.
namespace molly::engine {
namespace {

// Where the tokens of a tile are: their key and value rows, of all heads.
struct TokenRows {
  const std::byte* keys[tile_tokens];
  const std::byte* values[tile_tokens];
  std::uint32_t count = 0;
};

template <typename Vector>
struct BlockState {
  float* queries;  // [heads][query vectors][head_dim], scaled
  float* sums;     // [heads][query vectors][head_dim], of weighted values
  float* maxima;   // [heads][query vectors]
  float* totals;   // [heads][query vectors], of weights
  float* scores;   // [query vectors][tile_tokens]
  float* keys;     // [head_dim][tile_tokens]
  float* values;   // [tile_tokens][head_dim]
  std::size_t vectors;
  std::size_t head_dim;

  BlockState(const AttentionBlock& block, float* scratch)
      : vectors(block.query_vectors()), head_dim(block.kv->head_dim) {
    const std::size_t per_head = vectors * head_dim;
    keys = scratch;
    values = keys + tile_tokens * head_dim;
    scores = values + tile_tokens * head_dim;
    queries = scores + vectors * tile_tokens;
    sums = queries + block.heads * per_head;
    maxima = sums + block.heads * per_head;
    totals = maxima + block.heads * vectors;
  }
};

template <typename Vector>
void start(const AttentionBlock& block, const BlockState<Vector>& state) {
  const auto scale = Vector::broadcast(block.scale);
  float* query = state.queries;
  for (std::uint32_t head = 0; head < block.heads; ++head) {
    for (std::uint32_t row = 0; row < block.rows; ++row) {
      for (std::uint32_t member = 0; member < block.group; ++member, query += state.head_dim) {
        const float* from = head_row(block.queries, row, (block.first_head + head) * block.group + member);
        for (std::size_t i = 0; i < state.head_dim; i += Vector::width) {
          Vector::store(query + i, Vector::multiply(Vector::load(from + i), scale));
        }
      }
    }
  }
  std::fill_n(state.sums, block.heads * state.vectors * state.head_dim, 0.0F);
  std::fill_n(state.maxima, block.heads * state.vectors, -std::numeric_limits<float>::infinity());
  std::fill_n(state.totals, block.heads * state.vectors, 0.0F);
}

template <typename Vector>
void finish(const AttentionBlock& block, const BlockState<Vector>& state) {
  const float* sum = state.sums;
  const float* total = state.totals;
  for (std::uint32_t head = 0; head < block.heads; ++head) {
    for (std::uint32_t row = 0; row < block.rows; ++row) {
      for (std::uint32_t member = 0; member < block.group; ++member, sum += state.head_dim, ++total) {
        float* to = head_row(block.output, row, (block.first_head + head) * block.group + member);
        const auto share = Vector::broadcast(1 / *total);
        for (std::size_t i = 0; i < state.head_dim; i += Vector::width) {
          Vector::store(to + i, Vector::multiply(Vector::load(sum + i), share));
        }
      }
    }
  }
}

inline void find_tokens(const AttentionBlock& block, std::uint32_t first, std::uint32_t count, TokenRows& tokens) {
  const PagedKv& kv = *block.kv;
  std::uint32_t page = first / kv.page_tokens;
  std::uint32_t place = first % kv.page_tokens;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::byte* row =
        kv.base + static_cast<std::size_t>(block.pages[page]) * kv.page_stride + place * kv.row_bytes;
    tokens.keys[i] = row + kv.key_offset;
    tokens.values[i] = row + kv.value_offset;
    if (++place == kv.page_tokens) {
      place = 0;
      ++page;
    }
  }
  tokens.count = count;
}

// Up to this many query vectors share a reading of the values; more are worth a copy of them as floats.
inline constexpr std::size_t vectors_per_reading = 4;

template <typename Vector, typename Row>
void attend_head(const AttentionBlock& block, const BlockState<Vector>& state, const TokenRows& tokens,
                 std::uint32_t first_token, std::uint32_t head, Lookahead& ahead) {
  const std::size_t byte = (block.first_head + head) * state.head_dim / block_numbers * Row::block_bytes;
  const std::size_t dim = state.head_dim;
  const float* queries = state.queries + head * state.vectors * dim;
  float* sums = state.sums + head * state.vectors * dim;

  transpose_rows<Vector, Row>(tokens.keys, byte, tokens.count, dim, state.keys, tile_tokens, ahead);
  const std::size_t columns = divided_up(tokens.count, Vector::width) * Vector::width;
  multiply<Vector, Start::zero>(Operand{queries, dim}, FloatRows<Vector>{state.keys, tile_tokens},
                                Product{state.scores, tile_tokens},
                                Extent{.rows = state.vectors, .columns = columns, .inner = dim});

  std::size_t vector = head * state.vectors;
  for (std::size_t v = 0; v < state.vectors; ++v, ++vector) {
    const auto position = static_cast<std::int64_t>(block.first_position + v / block.group);
    const std::int64_t seen = std::clamp<std::int64_t>(position + 1 - first_token, 0, tokens.count);
    take_weights<Vector>(state.scores + v * tile_tokens, static_cast<int>(seen), static_cast<int>(columns),
                         SoftmaxRow{state.maxima + vector, state.totals + vector, sums + v * dim, dim});
  }

  const Extent extent{.rows = state.vectors, .columns = dim, .inner = tokens.count};
  const Operand weights{state.scores, tile_tokens};
  if (state.vectors <= vectors_per_reading) {
    multiply<Vector, Start::sum>(weights, StoredRows<Vector, Row>{tokens.values, byte}, Product{sums, dim}, extent);
    return;
  }
  copy_rows<Vector, Row>(tokens.values, byte, tokens.count, dim, state.values);
  multiply<Vector, Start::sum>(weights, FloatRows<Vector>{state.values, dim}, Product{sums, dim}, extent);
}

template <typename Vector, typename Row>
void attend_block(const AttentionBlock& block, float* scratch) {
  const BlockState<Vector> state(block, scratch);
  start(block, state);
  const std::size_t head_bytes = state.head_dim / block_numbers * Row::block_bytes;
  const std::uint32_t tokens = block.first_position + block.rows;
  TokenRows tiles[2];
  find_tokens(block, 0, std::min(tile_tokens, tokens), tiles[0]);
  for (std::uint32_t first = 0, tile = 0; first < tokens; first += tile_tokens, tile ^= 1U) {
    TokenRows& next = tiles[tile ^ 1U];
    const std::uint32_t after = first + tiles[tile].count;
    find_tokens(block, after, std::min(tile_tokens, tokens - after), next);
    const std::size_t squares = squares_in<Vector>(tiles[tile].count, state.head_dim);
    for (std::uint32_t head = 0; head < block.heads; ++head) {
      Lookahead ahead(next.keys, next.values, next.count * head / block.heads, next.count * (head + 1) / block.heads,
                      block.first_head * head_bytes, block.heads * head_bytes, squares);
      attend_head<Vector, Row>(block, state, tiles[tile], first, head, ahead);
    }
  }
  finish(block, state);
}

template <typename Vector>
void attend_block_of(const AttentionBlock& block, float* scratch) {
  if (block.kv->type == KvType::q8_0) return attend_block<Vector, Q8Row<Vector>>(block, scratch);
  attend_block<Vector, HalfRow<Vector>>(block, scratch);
}

}  // namespace
}  // namespace molly::engine
