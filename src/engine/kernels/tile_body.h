#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/kernels/inline.h"
#include "engine/kernels/lookahead.h"
#include "engine/kernels/row_formats.h"

// Small matrix products on tiles that lie in the first two cache levels. Every element is one chain of multiply-adds in
// the order of the inner dimension, however the tile is cut.
namespace molly::engine {
namespace {

// Rows of a right-hand side.
template <typename Vector>
struct FloatRows {
  const float* data;
  std::size_t stride;  // floats
  MOLLY_INLINE auto at(std::size_t row, std::size_t column) const { return Vector::load(data + row * stride + column); }
};

template <typename Vector, typename Row>
struct StoredRows {
  const std::byte* const* rows;
  std::size_t byte;  // where the columns start in each
  MOLLY_INLINE auto at(std::size_t row, std::size_t column) const { return Row::at(rows[row] + byte, column); }
};

struct Operand {
  const float* data;
  std::size_t stride;  // floats
};

struct Product {
  float* data;
  std::size_t stride;  // floats
};

struct Extent {
  std::size_t rows;
  std::size_t columns;  // a multiple of the vector's width
  std::size_t inner;
};

enum class Start : bool { zero, sum };

template <typename Vector, int rows, int vectors, Start start, typename Right>
MOLLY_INLINE void multiply_tile(const float* left, std::size_t left_stride, const Right& right, float* product,
                                std::size_t product_stride, std::size_t column, std::size_t inner) {
  typename Vector::Register sums[rows][vectors];
  MOLLY_UNROLL
  for (int row = 0; row < rows; ++row) {
    MOLLY_UNROLL
    for (int v = 0; v < vectors; ++v) {
      const float* from = product + static_cast<std::size_t>(row) * product_stride + column + v * Vector::width;
      sums[row][v] = start == Start::zero ? Vector::zero() : Vector::load(from);
    }
  }
  for (std::size_t i = 0; i < inner; ++i) {
    typename Vector::Register loaded[vectors];
    MOLLY_UNROLL
    for (int v = 0; v < vectors; ++v) loaded[v] = right.at(i, column + static_cast<std::size_t>(v) * Vector::width);
    MOLLY_UNROLL
    for (int row = 0; row < rows; ++row) {
      const auto factor = Vector::broadcast(left[static_cast<std::size_t>(row) * left_stride + i]);
      MOLLY_UNROLL
      for (int v = 0; v < vectors; ++v) sums[row][v] = Vector::multiply_add(factor, loaded[v], sums[row][v]);
    }
  }
  MOLLY_UNROLL
  for (int row = 0; row < rows; ++row) {
    MOLLY_UNROLL
    for (int v = 0; v < vectors; ++v) {
      Vector::store(product + static_cast<std::size_t>(row) * product_stride + column + v * Vector::width,
                    sums[row][v]);
    }
  }
}

template <typename Vector, int vectors, Start start, typename Right>
void multiply_columns(const Operand& left, const Right& right, const Product& product, const Extent& extent,
                      std::size_t column) {
  std::size_t row = 0;
  for (; row + 4 <= extent.rows; row += 4) {
    multiply_tile<Vector, 4, vectors, start>(left.data + row * left.stride, left.stride, right,
                                             product.data + row * product.stride, product.stride, column, extent.inner);
  }
  const float* rest = left.data + row * left.stride;
  float* to = product.data + row * product.stride;
  switch (extent.rows - row) {
    case 3:
      multiply_tile<Vector, 3, vectors, start>(rest, left.stride, right, to, product.stride, column, extent.inner);
      break;
    case 2:
      multiply_tile<Vector, 2, vectors, start>(rest, left.stride, right, to, product.stride, column, extent.inner);
      break;
    case 1:
      multiply_tile<Vector, 1, vectors, start>(rest, left.stride, right, to, product.stride, column, extent.inner);
      break;
    default: break;
  }
}

// product = left * right, or product += left * right.
template <typename Vector, Start start, typename Right>
void multiply(const Operand& left, const Right& right, const Product& product, const Extent& extent) {
  constexpr int together = Vector::registers >= 32 ? 4 : 2;
  std::size_t column = 0;
  for (; column + together * Vector::width <= extent.columns; column += together * Vector::width) {
    multiply_columns<Vector, together, start>(left, right, product, extent, column);
  }
  for (; column < extent.columns; column += Vector::width) {
    multiply_columns<Vector, 1, start>(left, right, product, extent, column);
  }
}

// Calls of Lookahead::ask that transpose_rows makes.
template <typename Vector>
constexpr std::size_t squares_in(std::size_t rows, std::size_t columns) {
  return divided_up(rows, Vector::width) * (columns / Vector::width);
}

// to[column][row] = rows[row][column], with rows filled up with zeros to whole vectors; `stride` floats between
// columns.
template <typename Vector, typename Row>
void transpose_rows(const std::byte* const* rows, std::size_t byte, std::size_t count, std::size_t columns, float* to,
                    std::size_t stride, Lookahead& ahead) {
  constexpr std::size_t width = Vector::width;
  for (std::size_t row = 0; row < count; row += width) {
    const int present = static_cast<int>(count - row < width ? count - row : width);
    for (std::size_t column = 0; column < columns; column += width) {
      typename Vector::Register square[Vector::width];
      ahead.ask();
      if (present == Vector::width) {
        MOLLY_UNROLL
        for (int i = 0; i < Vector::width; ++i)
          square[i] = Row::at(rows[row + static_cast<std::size_t>(i)] + byte, column);
      } else {
        for (int i = 0; i < Vector::width; ++i) {
          square[i] = i < present ? Row::at(rows[row + static_cast<std::size_t>(i)] + byte, column) : Vector::zero();
        }
      }
      Vector::transpose(square);
      MOLLY_UNROLL
      for (int i = 0; i < Vector::width; ++i) {
        Vector::store(to + (column + static_cast<std::size_t>(i)) * stride + row, square[i]);
      }
    }
  }
}

template <typename Vector, typename Row>
void copy_rows(const std::byte* const* rows, std::size_t byte, std::size_t count, std::size_t columns, float* to) {
  for (std::size_t row = 0; row < count; ++row) {
    for (std::size_t column = 0; column < columns; column += Vector::width) {
      Vector::store(to + row * columns + column, Row::at(rows[row] + byte, column));
    }
  }
}

}  // namespace
}  // namespace molly::engine
