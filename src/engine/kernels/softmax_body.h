#pragma once

#include <cmath>
#include <cstddef>
#include <limits>

#include "engine/kernels/inline.h"

namespace molly::engine {
namespace {

// e^x for x <= 0, to about 1e-7 of the result; below -87 the result stays at e^-87. Cephes' expf: x = n ln 2 + r, and a
// polynomial in r.
template <typename Vector>
MOLLY_INLINE typename Vector::Register exponential(typename Vector::Register x) {
  x = Vector::larger(x, Vector::broadcast(-87.0F));
  const auto n = Vector::round(Vector::multiply(x, Vector::broadcast(1.44269504088896341F)));
  auto r = Vector::multiply_add(n, Vector::broadcast(-0.693359375F), x);
  r = Vector::multiply_add(n, Vector::broadcast(2.12194440e-4F), r);
  auto y = Vector::broadcast(1.9875691500e-4F);
  y = Vector::multiply_add(y, r, Vector::broadcast(1.3981999507e-3F));
  y = Vector::multiply_add(y, r, Vector::broadcast(8.3334519073e-3F));
  y = Vector::multiply_add(y, r, Vector::broadcast(4.1665795894e-2F));
  y = Vector::multiply_add(y, r, Vector::broadcast(1.6666665459e-1F));
  y = Vector::multiply_add(y, r, Vector::broadcast(5.0000001201e-1F));
  y = Vector::multiply_add(y, Vector::multiply(r, r), Vector::add(r, Vector::broadcast(1.0F)));
  return Vector::times_power_of_two(y, n);
}

// What a query vector has gathered so far: the largest score, the sum of weights and the weighted sum of values, both
// relative to e^maximum.
struct SoftmaxRow {
  float* maximum;
  float* total;
  float* sum;
  std::size_t head_dim;
};

template <typename Vector>
void raise_maximum(const SoftmaxRow& row, float maximum) {
  const float factor = std::exp(*row.maximum - maximum);
  *row.maximum = maximum;
  *row.total *= factor;
  const auto wide = Vector::broadcast(factor);
  for (std::size_t i = 0; i < row.head_dim; i += Vector::width) {
    Vector::store(row.sum + i, Vector::multiply(Vector::load(row.sum + i), wide));
  }
}

// Turns a tile's scores into weights e^(score - maximum), of which those past `seen` are 0, and counts them in.
template <typename Vector>
void take_weights(float* scores, int seen, int columns, const SoftmaxRow& row) {
  constexpr float least = -std::numeric_limits<float>::infinity();
  auto largest = Vector::broadcast(least);
  int column = 0;
  for (; column + Vector::width <= seen; column += Vector::width) {
    largest = Vector::larger(largest, Vector::load(scores + column));
  }
  if (column < seen) {
    largest = Vector::larger(largest, Vector::keep_first(Vector::load(scores + column), seen - column, least));
  }
  const float maximum = Vector::largest(largest);
  if (maximum > *row.maximum) raise_maximum<Vector>(row, maximum);

  const auto negative = Vector::broadcast(-*row.maximum);
  auto total = Vector::zero();
  for (column = 0; column < seen; column += Vector::width) {
    auto weight = exponential<Vector>(Vector::add(Vector::load(scores + column), negative));
    if (column + Vector::width > seen) weight = Vector::keep_first(weight, seen - column, 0);
    total = Vector::add(total, weight);
    Vector::store(scores + column, weight);
  }
  for (; column < columns; column += Vector::width) Vector::store(scores + column, Vector::zero());
  *row.total += Vector::sum(total);
}

}  // namespace
}  // namespace molly::engine
