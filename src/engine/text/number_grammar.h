#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace molly::engine {

struct Bound {
  std::int64_t value = 0;
  bool exclusive = false;
};

struct Bounds {
  std::optional<Bound> least;
  std::optional<Bound> most;
};

// GBNF for the whole numbers, or the decimal numbers without an exponent, within bounds of at most 10^15; empty when
// there are none.
std::string grammar_of_integers(Bounds bounds);
std::string grammar_of_numbers(const Bounds& bounds);

}  // namespace molly::engine
