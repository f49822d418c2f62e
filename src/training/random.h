#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace molly::training {

// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): the same numbers on every platform; its state is one number, which
// checkpoints keep.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }
  // In [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  // Mean 0, variance 1 (Box and Muller, 1958).
  float normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return static_cast<float>(radius * std::cos(2 * std::numbers::pi * uniform()));
  }
  std::uint64_t state() const { return state_; }

 private:
  std::uint64_t state_;
};

}  // namespace molly::training
