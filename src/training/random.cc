#include "training/random.h"

#include <cmath>
#include <numbers>

namespace molly::training {

std::uint64_t Random::next() {
  state_ += 0x9e3779b97f4a7c15;
  std::uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

// Lemire, "Fast random integer generation in an interval", 2019: what would favour some numbers is drawn again.
std::uint32_t Random::below(std::uint32_t bound) {
  const std::uint32_t unfair = -bound % bound;
  while (true) {
    const std::uint64_t product = (next() >> 32) * bound;
    if (static_cast<std::uint32_t>(product) >= unfair) return static_cast<std::uint32_t>(product >> 32);
  }
}

double Random::fraction() { return std::ldexp(static_cast<double>(next() >> 11), -53); }

// Box and Muller, "A note on the generation of random normal deviates", 1958.
float Random::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - fraction()));
  return static_cast<float>(radius * std::cos(2 * std::numbers::pi * fraction()));
}

}  // namespace molly::training
