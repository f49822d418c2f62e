#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/error.h"
#include "training/data/example.h"

namespace molly::training {

// One example's place in a row.
struct PackedPart {
  std::uint32_t example = 0;  // index into the examples that were packed
  std::uint32_t first = 0;    // its first token's place in the row
  std::uint32_t length = 0;   // tokens
  bool operator==(const PackedPart&) const = default;
};

// Several examples back to back in one row of fixed length. All vectors are as long as the row. Attention goes from a
// token to earlier ones of the same segment only.
struct PackedRow {
  std::vector<std::int32_t> tokens;     // 0 in the padding
  std::vector<std::int32_t> positions;  // from 0 in every segment
  std::vector<std::int32_t> segments;   // from 0; the padding at the end is one of its own
  std::vector<std::int32_t> targets;    // the token that follows in the segment; 0 where none does
  std::vector<std::uint8_t> counts;     // whether the target is predicted with loss
  std::vector<PackedPart> parts;

  std::size_t counted() const;
  bool operator==(const PackedRow&) const = default;
};

// First-fit decreasing: the longest examples first, each into the first row with room; equal lengths in their order.
// The same examples always give the same rows. invalid_request: an example is longer than a row, or empty.
Result<std::vector<PackedRow>> pack(std::span<const Example> examples, std::size_t row_tokens);

}  // namespace molly::training
