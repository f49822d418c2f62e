#include "engine/schedule/step_cost.h"

#include <algorithm>

namespace molly::engine {
namespace {

constexpr double kept_per_pass = 0.98;
constexpr double kept_of_measured = 0.75;
// After so many passes without one of a size, what was measured of it may not be true any more.
constexpr std::uint64_t passes_remembered = 1000;
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
  ++count_;
  if (rows > small_passes) return;
  Measured& measured = measured_[rows];
  const double kept = is_known(rows) ? kept_of_measured : 0;
  measured = {.milliseconds = measured.milliseconds * kept + milliseconds * (1 - kept), .at = count_};
}

bool StepCost::is_known(std::uint32_t rows) const {
  return rows <= small_passes && measured_[rows].at > 0 && count_ - measured_[rows].at <= passes_remembered;
}

double StepCost::per_row() const {
  const double variance = passes_ * rows_squared_ - rows_ * rows_;
  if (variance <= 1e-6 * rows_ * rows_ || milliseconds_ <= 0) return 0;
  const double slope = (passes_ * rows_milliseconds_ - rows_ * milliseconds_) / variance;
  return std::clamp(slope, 0.0, milliseconds_ / rows_);
}

double StepCost::on_the_line(std::uint32_t rows) const {
  if (passes_ <= 0) return 0;
  const double slope = per_row();
  return std::max(milliseconds_ - slope * rows_, 0.0) / passes_ + slope * rows;
}

// From the nearest smaller pass that was measured, up along the line: a guess that invites to be tried.
double StepCost::milliseconds(std::uint32_t rows) const {
  if (is_known(rows)) return measured_[rows].milliseconds;
  for (std::uint32_t fewer = std::min(rows, small_passes + 1); fewer-- > 1;) {
    if (is_known(fewer)) return measured_[fewer].milliseconds + per_row() * (rows - fewer);
  }
  return on_the_line(rows);
}

double StepCost::of_more_rows(std::uint32_t rows, std::uint32_t more) const {
  const double now = share(rows);
  if (now <= 0 || per_row() <= 0) return first_guess * more;
  return std::max(milliseconds(rows + more) - milliseconds(rows), 0.0) / now;
}

}  // namespace molly::engine
