#pragma once

#include <cstdint>

namespace molly::training {

// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): the same numbers on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  // Below `bound`, which is not 0; without bias.
  std::uint32_t below(std::uint32_t bound);
  // From 0 to below 1.
  double fraction();
  // Mean 0, variance 1.
  float normal();

 private:
  std::uint64_t state_;
};

}  // namespace molly::training
