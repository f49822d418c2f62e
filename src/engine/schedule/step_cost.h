#pragma once

#include <chrono>
#include <cstdint>

namespace molly::engine {

// What a forward pass costs by its rows: fixed + rows * per_row, by least squares over recent passes.
class StepCost {
 public:
  void note(std::uint32_t rows, std::chrono::nanoseconds taken);

  // Milliseconds of one more row; nothing is known (0) before passes of different sizes were seen.
  double per_row() const;
  // A row's share in the milliseconds of a step of `rows`; 0 before the first pass.
  double share(std::uint32_t rows) const;
  // One more row in a step of `rows`, relative to the share that one of these rows has in the step's time: 0 where a
  // step's time does not depend on its rows, 1 where it is proportional to them.
  double relative_per_row(std::uint32_t rows) const;

 private:
  double passes_ = 0;  // decayed sums
  double rows_ = 0;
  double milliseconds_ = 0;
  double rows_squared_ = 0;
  double rows_milliseconds_ = 0;
};

}  // namespace molly::engine
