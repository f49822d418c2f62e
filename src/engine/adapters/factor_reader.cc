#include "engine/adapters/factor_reader.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "engine/adapters/factor_pairs.h"

namespace molly::engine {
namespace {

constexpr float largest_half = 65504;

// What half precision can hold: the number itself, or the scale of a block of bytes.
float largest_of(FactorType type) { return type == FactorType::q8_0 ? largest_half * 127 : largest_half; }

std::unexpected<Error> not_finite(const LoraTensor& tensor) {
  return refusal(name_of(tensor.layer, tensor.projection) +
                 ": the adapter holds numbers that are infinite or not a number");
}

Result<void> check(const LoraTensor& tensor, float largest, FactorType type) {
  if (!std::isfinite(largest)) return not_finite(tensor);
  if (largest <= largest_of(type)) return {};
  return refusal(name_of(tensor.layer, tensor.projection) + ": the adapter holds numbers too large for half precision");
}

void encode(FactorType type, std::span<const float> from, std::byte* to) {
  const std::span into(to, row_bytes(type, from.size()));
  if (type == FactorType::q8_0) {
    encode_q8_0(from, into);
  } else {
    encode_f16(from, into);
  }
}

// to[column][row] = from[row][column], in pieces that stay in the nearest cache.
template <class Number>
void transpose(const Number* from, std::size_t rows, std::size_t columns, std::span<Number* const> to,
               std::size_t first_row = 0) {
  constexpr std::size_t piece = 64;
  for (std::size_t first = first_row; first < rows; first += piece) {
    const std::size_t end = std::min(rows, first + piece);
    for (std::size_t column = 0; column < columns; ++column) {
      Number* const out = to[column];
      for (std::size_t row = first; row < end; ++row) out[row] = from[row * columns + column];
    }
  }
}

using EightHalves = std::uint16_t __attribute__((vector_size(16)));
constexpr std::size_t side = 8;

// Three rounds in which halves of the rows are interleaved transpose a square of eight by eight.
void transpose_square(const std::uint16_t* from, std::size_t stride, std::span<std::uint16_t* const> to,
                      std::size_t place) {
  EightHalves rows[side];
  for (std::size_t i = 0; i < side; ++i) std::memcpy(&rows[i], from + i * stride, sizeof rows[i]);
  for (int round = 0; round < 3; ++round) {
    EightHalves mixed[side];
    for (std::size_t i = 0; i < side / 2; ++i) {
      mixed[2 * i] = __builtin_shufflevector(rows[i], rows[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
      mixed[2 * i + 1] = __builtin_shufflevector(rows[i], rows[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
    std::ranges::copy(mixed, rows);
  }
  for (std::size_t i = 0; i < side; ++i) std::memcpy(to[i] + place, &rows[i], sizeof rows[i]);
}

void transpose_halves(const std::uint16_t* from, std::size_t rows, std::size_t columns,
                      std::span<std::uint16_t* const> to) {
  if (columns % side != 0) return transpose(from, rows, columns, to);
  const std::size_t whole = rows / side * side;
  for (std::size_t row = 0; row < whole; row += side) {
    for (std::size_t column = 0; column < columns; column += side) {
      transpose_square(from + row * columns + column, columns, to.subspan(column, side), row);
    }
  }
  transpose(from, rows, columns, to, whole);
}

}  // namespace

Result<void> FactorReader::read(const StoredMatrix& matrix) {
  stored_.resize(matrix.bytes());
  return file_.read(matrix.offset, stored_);
}

// Row i of the first half of a head and row i of the second come to lie beside each other: what llama.cpp's
// convert_hf_to_gguf.py (LlamaModel.permute) did to the base's rows.
void FactorReader::interleave(const LoraTensor& tensor) {
  if (tensor.interleaved_heads == 0) return;
  const std::size_t row_bytes = stored_.size() / tensor.n_out();
  const std::size_t half = tensor.n_out() / tensor.interleaved_heads / 2;
  ordered_.resize(stored_.size());
  for (std::size_t row = 0; row < tensor.n_out(); ++row) {
    const std::size_t head = row / (2 * half);
    const std::size_t within = row % (2 * half);
    const std::size_t target = head * 2 * half + within % half * 2 + within / half;
    std::memcpy(&ordered_[target * row_bytes], &stored_[row * row_bytes], row_bytes);
  }
  stored_.swap(ordered_);
}

Result<std::span<const float>> FactorReader::decoded(const LoraTensor& tensor, const StoredMatrix& matrix,
                                                     FactorType type) {
  numbers_.resize(matrix.rows * matrix.columns);
  decode(matrix.format, stored_, numbers_);
  auto good = check(tensor, largest_magnitude(numbers_), type);
  if (!good) return std::unexpected(std::move(good.error()));
  return numbers_;
}

Result<std::span<const std::uint16_t>> FactorReader::halves(const LoraTensor& tensor) {
  const std::span numbers(reinterpret_cast<const std::uint16_t*>(stored_.data()), stored_.size() / 2);
  if (!all_finite(numbers)) return not_finite(tensor);
  return numbers;
}

Result<void> FactorReader::write_a(const LoraTensor& tensor, FactorType type, std::span<std::byte* const> rows) {
  if (auto done = read(tensor.a); !done) return done;
  const std::size_t columns = tensor.n_in();
  if (tensor.a.format == NumberFormat::f16 && type == FactorType::f16) {
    const auto numbers = halves(tensor);
    if (!numbers) return std::unexpected(numbers.error());
    for (std::size_t r = 0; r < rows.size(); ++r) std::memcpy(rows[r], &(*numbers)[r * columns], columns * 2);
    return {};
  }
  const auto numbers = decoded(tensor, tensor.a, type);
  if (!numbers) return std::unexpected(numbers.error());
  for (std::size_t r = 0; r < rows.size(); ++r) encode(type, numbers->subspan(r * columns, columns), rows[r]);
  return {};
}

Result<void> FactorReader::write_b(const LoraTensor& tensor, FactorType type, std::span<std::byte* const> rows) {
  if (auto done = read(tensor.b); !done) return done;
  interleave(tensor);
  const std::size_t columns = tensor.n_out();
  if (tensor.b.format == NumberFormat::f16 && type == FactorType::f16) {
    const auto numbers = halves(tensor);
    if (!numbers) return std::unexpected(numbers.error());
    std::vector<std::uint16_t*> to;
    to.reserve(rows.size());
    for (std::byte* row : rows) to.push_back(reinterpret_cast<std::uint16_t*>(row));
    transpose_halves(numbers->data(), columns, rows.size(), to);
    return {};
  }
  const auto numbers = decoded(tensor, tensor.b, type);
  if (!numbers) return std::unexpected(numbers.error());
  transposed_.resize(numbers->size());
  std::vector<float*> to;
  to.reserve(rows.size());
  for (std::size_t r = 0; r < rows.size(); ++r) to.push_back(&transposed_[r * columns]);
  transpose<float>(numbers->data(), columns, rows.size(), to);
  for (std::size_t r = 0; r < rows.size(); ++r) encode(type, {to[r], columns}, rows[r]);
  return {};
}

}  // namespace molly::engine
