#pragma once

#include <cstdint>
#include <vector>

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

 private:
  std::uint64_t state_;
};

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
