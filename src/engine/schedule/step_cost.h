#pragma once

#include <array>
#include <chrono>
#include <cstdint>

namespace molly::engine {

// What a forward pass costs by its rows. Small passes are measured one by one: kernels take rows in groups, so that the
// second row may cost as much as the first and the fourth next to nothing. Larger ones, and those not seen lately, lie
// on a line through what was seen: fixed + rows * per_row, by least squares over recent passes.
class StepCost {
 public:
  void note(std::uint32_t rows, std::chrono::nanoseconds taken);

  // Milliseconds of one more row in a large pass; nothing is known (0) before passes of different sizes were seen.
  double per_row() const;
  // Of a pass; 0 before the first one.
  double milliseconds(std::uint32_t rows) const;
  // A row's share in them.
  double share(std::uint32_t rows) const { return milliseconds(rows) / rows; }
  // What so many more rows cost in a pass of `rows`, relative to the share that one of these has in it: 0 where a
  // pass's time does not depend on its rows.
  double of_more_rows(std::uint32_t rows, std::uint32_t more) const;

 private:
  static constexpr std::uint32_t small_passes = 64;
  struct Measured {
    double milliseconds = 0;  // decayed mean
    std::uint64_t at = 0;     // the last pass of this size; 0: none
  };
  bool is_known(std::uint32_t rows) const;
  double on_the_line(std::uint32_t rows) const;

  std::uint64_t count_ = 0;
  std::array<Measured, small_passes + 1> measured_{};  // by rows
  double passes_ = 0;                                  // decayed sums
  double rows_ = 0;
  double milliseconds_ = 0;
  double rows_squared_ = 0;
  double rows_milliseconds_ = 0;
};

}  // namespace molly::engine
