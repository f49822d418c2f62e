#include "engine/memory/eviction.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace molly::engine {
namespace {

double half_lives(UseRate::Clock::duration time) {
  return std::chrono::duration<double>(time) / std::chrono::duration<double>(UseRate::half_life);
}

}  // namespace

void UseRate::note_use(Clock::time_point now) {
  if (weight_ == 0) last_ = now;
  const auto later = std::max(now, last_);
  weight_ = weight_ * std::exp2(-half_lives(later - last_)) + 1;
  last_ = later;
}

double UseRate::rate(Clock::time_point now) const {
  const double weight = weight_ * std::exp2(-half_lives(std::max(now, last_) - last_));
  return weight * std::numbers::ln2 / std::chrono::duration<double>(half_life).count();
}

double UseRate::standing() const {
  if (weight_ == 0) return -std::numeric_limits<double>::infinity();
  return std::log2(weight_) + half_lives(last_.time_since_epoch());
}

}  // namespace molly::engine
