#include "training/data/packing.h"

#include <algorithm>
#include <format>
#include <numeric>

namespace molly::training {
namespace {

// A tree of maxima over the room that rows have left, so that the first row with room for an example is found in a few
// steps. Rows that were not begun have all their room.
class FirstFit {
 public:
  FirstFit(std::size_t rows, std::size_t room) {
    while (leaves_ < rows) leaves_ *= 2;
    most_.assign(2 * leaves_, room);
  }

  // There is always one: there are as many rows as examples.
  std::size_t take(std::size_t length) {
    std::size_t node = 1;
    while (node < leaves_) node = most_[2 * node] >= length ? 2 * node : 2 * node + 1;
    most_[node] -= length;
    const std::size_t row = node - leaves_;
    for (node /= 2; node > 0; node /= 2) most_[node] = std::max(most_[2 * node], most_[2 * node + 1]);
    return row;
  }

 private:
  std::size_t leaves_ = 1;
  std::vector<std::size_t> most_;
};

std::vector<std::uint32_t> longest_first(std::span<const Example> examples) {
  std::vector<std::uint32_t> order(examples.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, std::greater(), [&](std::uint32_t i) { return examples[i].tokens.size(); });
  return order;
}

void append(PackedRow& row, const Example& example, std::uint32_t index) {
  const auto first = static_cast<std::uint32_t>(row.tokens.size());
  const auto length = static_cast<std::uint32_t>(example.tokens.size());
  const auto segment = static_cast<std::int32_t>(row.parts.size());
  row.parts.push_back({index, first, length});
  for (std::uint32_t i = 0; i < length; ++i) {
    const bool has_next = i + 1 < length;
    row.tokens.push_back(example.tokens[i]);
    row.positions.push_back(static_cast<std::int32_t>(i));
    row.segments.push_back(segment);
    row.targets.push_back(has_next ? example.tokens[i + 1] : 0);
    row.counts.push_back(has_next ? example.counts[i + 1] : std::uint8_t{0});
  }
}

void pad(PackedRow& row, std::size_t row_tokens) {
  const std::size_t padding = row_tokens - row.tokens.size();
  for (std::size_t i = 0; i < padding; ++i) row.positions.push_back(static_cast<std::int32_t>(i));
  row.tokens.resize(row_tokens, 0);
  row.segments.resize(row_tokens, static_cast<std::int32_t>(row.parts.size()));
  row.targets.resize(row_tokens, 0);
  row.counts.resize(row_tokens, 0);
}

}  // namespace

std::size_t PackedRow::counted() const { return static_cast<std::size_t>(std::ranges::count(counts, std::uint8_t{1})); }

Result<std::vector<PackedRow>> pack(std::span<const Example> examples, std::size_t row_tokens) {
  FirstFit rows_with_room(examples.size(), row_tokens);
  std::vector<PackedRow> rows;
  for (const std::uint32_t index : longest_first(examples)) {
    const std::size_t length = examples[index].tokens.size();
    if (length == 0 || length > row_tokens) {
      return failure(ErrorCode::invalid_request,
                     std::format("example {} has {} tokens; a row holds 1 to {}", index, length, row_tokens));
    }
    const std::size_t row = rows_with_room.take(length);
    if (row >= rows.size()) rows.resize(row + 1);
    append(rows[row], examples[index], index);
  }
  for (PackedRow& row : rows) pad(row, row_tokens);
  return rows;
}

}  // namespace molly::training
