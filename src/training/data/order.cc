#include "training/data/order.h"

#include <cmath>
#include <numeric>
#include <utility>

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

EpochOrder::EpochOrder(std::uint32_t count, OrderState state) : order_(count), state_(state) {
  state_.epoch += state_.index / count;
  state_.index %= count;
  shuffle();
}

void EpochOrder::shuffle() {
  std::iota(order_.begin(), order_.end(), 0U);
  Random of_seed(state_.seed);
  Random random(of_seed.next() + state_.epoch);
  for (auto left = static_cast<std::uint32_t>(order_.size()); left > 1; --left) {
    std::swap(order_[left - 1], order_[random.below(left)]);
  }
}

std::uint32_t EpochOrder::next() {
  const std::uint32_t row = order_[state_.index++];
  if (state_.index == order_.size()) {
    state_.index = 0;
    ++state_.epoch;
    shuffle();
  }
  return row;
}

}  // namespace molly::training
