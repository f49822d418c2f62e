#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "training/data/teacher.h"

namespace molly::training {

// Where an example comes from: what errors and reports name.
struct Origin {
  std::uint32_t file = 0;  // index into the files of the data set
  std::uint32_t line = 0;  // from 1
  bool operator==(const Origin&) const = default;
};

// A conversation as the base reads it.
struct Example {
  std::vector<std::int32_t> tokens;
  // counts[i]: token i is to be predicted with loss (i >= 1). None does in a prompt without an answer, which ends where
  // the assistant's turn begins.
  std::vector<std::uint8_t> counts;
  std::string key;  // examples of one key are never on both sides of the split
  Origin origin;
  std::optional<TeacherScores> teacher;  // one row for each token that counts

  std::size_t counted() const { return static_cast<std::size_t>(std::ranges::count(counts, std::uint8_t{1})); }
  bool is_prompt() const { return counted() == 0; }
};

// One prompt, and of two answers to it the one that is preferred. Both begin with the prompt's tokens.
struct Pair {
  Example chosen;
  Example rejected;
};

}  // namespace molly::training
