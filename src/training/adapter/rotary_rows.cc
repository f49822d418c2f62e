#include "training/adapter/rotary_rows.h"

#include <algorithm>

namespace molly::training {
namespace {

// Calls move(row in halves, row in pairs) for every row.
template <class Move>
void for_each_row(std::size_t rows, std::uint32_t heads, Move&& move) {
  const std::size_t length = rows / heads;  // of a head
  const std::size_t half = length / 2;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t within = row % length;
    move(row, row - within + within % half * 2 + within / half);
  }
}

void copy_row(std::span<const float> from, std::size_t source, std::vector<float>& to, std::size_t target,
              std::size_t length) {
  std::ranges::copy(from.subspan(source * length, length), to.begin() + static_cast<std::ptrdiff_t>(target * length));
}

}  // namespace

std::vector<float> interleaved(std::span<const float> rows, std::uint32_t row_length, std::uint32_t heads) {
  std::vector<float> out(rows.size());
  for_each_row(rows.size() / row_length, heads,
               [&](std::size_t halves, std::size_t pairs) { copy_row(rows, halves, out, pairs, row_length); });
  return out;
}

std::vector<float> in_halves(std::span<const float> rows, std::uint32_t row_length, std::uint32_t heads) {
  std::vector<float> out(rows.size());
  for_each_row(rows.size() / row_length, heads,
               [&](std::size_t halves, std::size_t pairs) { copy_row(rows, pairs, out, halves, row_length); });
  return out;
}

}  // namespace molly::training
