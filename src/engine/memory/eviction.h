#pragma once

#include <chrono>
#include <cstdint>

namespace molly::engine {

// What keeping something is worth: expected uses per second times the milliseconds that a use would cost without it,
// per page. One measure for cached prefixes (cost: prefill) and adapters (cost: reload). After
// GreedyDual-Size-Frequency (Cherkasova, HPL-98-69), with the frequency decaying so that a drifting load is followed.
class UseRate {
 public:
  using Clock = std::chrono::steady_clock;

  // Time does not run backwards: a use before the last one counts as at its moment.
  void note_use(Clock::time_point now);
  // Uses per second, exponentially averaged with the half-life below; falls while nothing happens.
  double rate(Clock::time_point now) const;
  // Orders things by rate without asking for the time: all rates fall alike, so of two the one that is larger now stays
  // larger until its like is used again. Minus infinity when never used.
  double standing() const;

  static constexpr std::chrono::seconds half_life{60};

 private:
  double weight_ = 0;  // uses, each halved with every half-life that passed since, as of last_
  Clock::time_point last_{};
};

inline double keep_score(double uses_per_second, double milliseconds_to_restore, std::uint32_t pages) {
  return uses_per_second * milliseconds_to_restore / static_cast<double>(pages == 0 ? 1 : pages);
}

}  // namespace molly::engine
