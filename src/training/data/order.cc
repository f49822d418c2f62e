#include "training/data/order.h"

#include <numeric>
#include <utility>

#include "training/random.h"

namespace molly::training {

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
