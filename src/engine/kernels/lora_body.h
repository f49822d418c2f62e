#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "engine/kernels/inline.h"
#include "engine/kernels/kernel_set.h"
#include "engine/kernels/row_formats.h"

// The two halves of a low-rank product for any Vector. Each (row, rank) has its own accumulator and each (row, column)
// takes the ranks in order, so that a row's numbers do not depend on how rows and ranks are grouped here.
namespace molly::engine {
namespace {

template <typename Vector>
inline constexpr int vectors_per_block = static_cast<int>(block_numbers) / Vector::width;

// Ranks taken together: as many as leave their accumulators in registers.
template <typename Vector, int rows>
inline constexpr int ranks_together = rows == 1                              ? 8
                                      : Vector::registers >= 32 || rows == 2 ? 4
                                                                             : 2;

template <typename Row>
MOLLY_INLINE void prefetch_block(const std::byte* row, std::size_t column) {
  __builtin_prefetch(row + column / block_numbers * Row::block_bytes);
}

template <typename Vector, typename Row, int ranks, int rows>
struct ShrinkTile {
  using Register = typename Vector::Register;
  Register sums[ranks][rows];

  MOLLY_INLINE void clear() {
    MOLLY_UNROLL
    for (int rank = 0; rank < ranks; ++rank) {
      MOLLY_UNROLL
      for (int row = 0; row < rows; ++row) sums[rank][row] = Vector::zero();
    }
  }

  MOLLY_INLINE void add_block(const std::byte* const (&a)[ranks], std::size_t a_column, const float* const (&x)[rows],
                              std::size_t x_column) {
    MOLLY_UNROLL
    for (int rank = 0; rank < ranks; ++rank) {
      MOLLY_UNROLL
      for (int v = 0; v < vectors_per_block<Vector>; ++v) {
        const std::size_t offset = static_cast<std::size_t>(v) * Vector::width;
        const Register factor = Row::at(a[rank], a_column + offset);
        MOLLY_UNROLL
        for (int row = 0; row < rows; ++row) {
          sums[rank][row] = Vector::multiply_add(factor, Vector::load(x[row] + x_column + offset), sums[rank][row]);
        }
      }
    }
  }

  // Columns past the last whole block; only half precision has them.
  void add_rest(const std::byte* const (&a)[ranks], std::size_t column, const float* const (&x)[rows],
                std::size_t columns) {
    alignas(64) std::byte a_rest[ranks][block_numbers * half_bytes] = {};
    alignas(64) float x_rest[rows][block_numbers] = {};
    const std::byte* a_rows[ranks];
    const float* x_rows[rows];
    for (int rank = 0; rank < ranks; ++rank) {
      std::memcpy(a_rest[rank], a[rank] + column * half_bytes, columns * half_bytes);
      a_rows[rank] = a_rest[rank];
    }
    for (int row = 0; row < rows; ++row) {
      std::memcpy(x_rest[row], x[row] + column, columns * sizeof(float));
      x_rows[row] = x_rest[row];
    }
    add_block(a_rows, 0, x_rows, 0);
  }
};

template <typename Vector, typename Row, int ranks, int rows>
void shrink_tile(const ShrinkUnit& unit, std::uint32_t first_rank, std::uint32_t first_row) {
  const std::byte* a[ranks];
  const std::byte* ahead[ranks];
  const float* x[rows];
  for (int rank = 0; rank < ranks; ++rank) {
    a[rank] = unit.a.rows[first_rank + static_cast<std::uint32_t>(rank)];
    ahead[rank] = unit.a.ahead[first_rank + static_cast<std::uint32_t>(rank)];
  }
  for (int row = 0; row < rows; ++row) x[row] = row_of(unit.x, first_row + static_cast<std::uint32_t>(row));

  ShrinkTile<Vector, Row, ranks, rows> tile;
  tile.clear();
  std::size_t column = 0;
  for (; column + block_numbers <= unit.n_in; column += block_numbers) {
    MOLLY_UNROLL
    for (int rank = 0; rank < ranks; ++rank) prefetch_block<Row>(ahead[rank], column);
    tile.add_block(a, column, x, column);
  }
  if (column < unit.n_in) tile.add_rest(a, column, x, unit.n_in - column);
  for (int row = 0; row < rows; ++row) {
    float* hidden = unit.hidden + (first_row + static_cast<std::uint32_t>(row)) * unit.hidden_stride + first_rank;
    for (int rank = 0; rank < ranks; ++rank) hidden[rank] = unit.scale * Vector::sum(tile.sums[rank][row]);
  }
}

template <typename Vector, typename Row, int ranks, int rows>
struct ExpandTile {
  using Register = typename Vector::Register;
  Register hidden[ranks][rows];

  MOLLY_INLINE void add_block(const std::byte* const (&b)[ranks], std::size_t b_column, float* const (&y)[rows],
                              std::size_t y_column) const {
    MOLLY_UNROLL
    for (int v = 0; v < vectors_per_block<Vector>; ++v) {
      const std::size_t offset = static_cast<std::size_t>(v) * Vector::width;
      Register sums[rows];
      MOLLY_UNROLL
      for (int row = 0; row < rows; ++row) sums[row] = Vector::load(y[row] + y_column + offset);
      MOLLY_UNROLL
      for (int rank = 0; rank < ranks; ++rank) {
        const Register factor = Row::at(b[rank], b_column + offset);
        MOLLY_UNROLL
        for (int row = 0; row < rows; ++row) {
          sums[row] = Vector::multiply_add(factor, hidden[rank][row], sums[row]);
        }
      }
      MOLLY_UNROLL
      for (int row = 0; row < rows; ++row) Vector::store(y[row] + y_column + offset, sums[row]);
    }
  }

  void add_rest(const std::byte* const (&b)[ranks], std::size_t b_column, float* const (&y)[rows], std::size_t y_column,
                std::size_t columns) const {
    alignas(64) std::byte b_rest[ranks][block_numbers * half_bytes] = {};
    alignas(64) float y_rest[rows][block_numbers] = {};
    const std::byte* b_rows[ranks];
    float* y_rows[rows];
    for (int rank = 0; rank < ranks; ++rank) {
      std::memcpy(b_rest[rank], b[rank] + b_column * half_bytes, columns * half_bytes);
      b_rows[rank] = b_rest[rank];
    }
    for (int row = 0; row < rows; ++row) {
      std::memcpy(y_rest[row], y[row] + y_column, columns * sizeof(float));
      y_rows[row] = y_rest[row];
    }
    add_block(b_rows, 0, y_rows, 0);
    for (int row = 0; row < rows; ++row) std::memcpy(y[row] + y_column, y_rest[row], columns * sizeof(float));
  }
};

template <typename Vector, typename Row, int ranks, int rows>
void expand_tile(const ExpandUnit& unit, std::uint32_t first_rank, std::uint32_t first_row) {
  const std::byte* b[ranks];
  const std::byte* ahead[ranks];
  float* y[rows];
  ExpandTile<Vector, Row, ranks, rows> tile;
  for (int rank = 0; rank < ranks; ++rank) {
    b[rank] = unit.b.rows[first_rank + static_cast<std::uint32_t>(rank)];
    ahead[rank] = unit.b.ahead[first_rank + static_cast<std::uint32_t>(rank)];
  }
  for (int row = 0; row < rows; ++row) {
    const auto at = first_row + static_cast<std::uint32_t>(row);
    y[row] = row_of(unit.y, at);
    for (int rank = 0; rank < ranks; ++rank) {
      tile.hidden[rank][row] =
          Vector::broadcast(unit.hidden[at * unit.hidden_stride + first_rank + static_cast<std::uint32_t>(rank)]);
    }
  }
  std::size_t column = 0;
  for (; column + block_numbers <= unit.columns; column += block_numbers) {
    MOLLY_UNROLL
    for (int rank = 0; rank < ranks; ++rank) prefetch_block<Row>(ahead[rank], unit.first_column + column);
    tile.add_block(b, unit.first_column + column, y, column);
  }
  if (column < unit.columns) tile.add_rest(b, unit.first_column + column, y, column, unit.columns - column);
}

template <typename Vector, typename Row>
struct Shrink {
  using Unit = ShrinkUnit;
  template <int ranks, int rows>
  static void run(const Unit& unit, std::uint32_t first_rank, std::uint32_t first_row) {
    shrink_tile<Vector, Row, ranks, rows>(unit, first_rank, first_row);
  }
  static std::uint32_t ranks(const Unit& unit) { return unit.a.count; }
};

template <typename Vector, typename Row>
struct Expand {
  using Unit = ExpandUnit;
  template <int ranks, int rows>
  static void run(const Unit& unit, std::uint32_t first_rank, std::uint32_t first_row) {
    expand_tile<Vector, Row, ranks, rows>(unit, first_rank, first_row);
  }
  static std::uint32_t ranks(const Unit& unit) { return unit.b.count; }
};

template <typename Half, int rows, std::uint32_t together>
void run_ranks(const typename Half::Unit& unit, std::uint32_t rank, std::uint32_t first_row) {
  for (; rank + together <= Half::ranks(unit); rank += together) {
    Half::template run<together, rows>(unit, rank, first_row);
  }
  if constexpr (together > 1) run_ranks<Half, rows, together / 2>(unit, rank, first_row);
}

template <typename Vector, typename Half>
void run_unit(const typename Half::Unit& unit) {
  std::uint32_t row = 0;
  for (; row + 4 <= unit.rows; row += 4) run_ranks<Half, 4, ranks_together<Vector, 4>>(unit, 0, row);
  switch (unit.rows - row) {
    case 3: run_ranks<Half, 3, ranks_together<Vector, 3>>(unit, 0, row); break;
    case 2: run_ranks<Half, 2, ranks_together<Vector, 2>>(unit, 0, row); break;
    case 1: run_ranks<Half, 1, ranks_together<Vector, 1>>(unit, 0, row); break;
    default: break;
  }
}

template <typename Vector>
void shrink(const ShrinkUnit& unit) {
  if (unit.a.type == FactorType::q8_0) return run_unit<Vector, Shrink<Vector, Q8Row<Vector>>>(unit);
  run_unit<Vector, Shrink<Vector, HalfRow<Vector>>>(unit);
}

template <typename Vector>
void expand(const ExpandUnit& unit) {
  if (unit.b.type == FactorType::q8_0) return run_unit<Vector, Expand<Vector, Q8Row<Vector>>>(unit);
  run_unit<Vector, Expand<Vector, HalfRow<Vector>>>(unit);
}

}  // namespace
}  // namespace molly::engine
