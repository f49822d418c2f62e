#pragma once

#include <cstdint>
#include <vector>

namespace molly::training {

// Everything that resuming exactly needs to know of the order.
struct OrderState {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t index = 0;  // into the epoch: how many were taken
  bool operator==(const OrderState&) const = default;
};

// Goes through `count` rows in an order of its own in every epoch, without end.
class EpochOrder {
 public:
  // `count` is not 0.
  EpochOrder(std::uint32_t count, OrderState state);

  std::uint32_t next();
  // Where next() goes on. An epoch that is through counts as the beginning of the next one.
  const OrderState& state() const { return state_; }

 private:
  void shuffle();

  std::vector<std::uint32_t> order_;
  OrderState state_;
};

}  // namespace molly::training
