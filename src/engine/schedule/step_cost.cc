#include "engine/schedule/step_cost.h"

#include <algorithm>

namespace molly::engine {
namespace {

constexpr double kept_per_pass = 0.98;
// Rows of one step mostly share the reading of the weights; what a processor makes of it is soon measured.
constexpr double first_guess = 0.2;

}  // namespace

void StepCost::note(std::uint32_t rows, std::chrono::nanoseconds taken) {
  const double milliseconds = std::chrono::duration<double, std::milli>(taken).count();
  const double count = rows;
  const auto add = [](double& sum, double value) { sum = sum * kept_per_pass + value; };
  add(passes_, 1);
  add(rows_, count);
  add(milliseconds_, milliseconds);
  add(rows_squared_, count * count);
  add(rows_milliseconds_, count * milliseconds);
}

double StepCost::per_row() const {
  const double variance = passes_ * rows_squared_ - rows_ * rows_;
  if (variance <= 1e-6 * rows_ * rows_ || milliseconds_ <= 0) return 0;
  const double slope = (passes_ * rows_milliseconds_ - rows_ * milliseconds_) / variance;
  return std::clamp(slope, 0.0, milliseconds_ / rows_);
}

double StepCost::share(std::uint32_t rows) const {
  if (rows_ <= 0) return 0;
  const double slope = per_row();
  if (slope <= 0) return milliseconds_ / std::max(passes_ * rows, 1.0);
  const double fixed = (milliseconds_ - slope * rows_) / passes_;
  return std::max(fixed, 0.0) / std::max(rows, 1U) + slope;
}

double StepCost::relative_per_row(std::uint32_t rows) const {
  const double slope = per_row();
  return slope <= 0 ? first_guess : slope / share(rows);
}

}  // namespace molly::engine
