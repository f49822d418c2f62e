#include "training/loss/optimizer.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>

namespace molly::training {

double RateSchedule::at(std::uint64_t step) const {
  if (step < warm_up) return peak * static_cast<double>(step) / static_cast<double>(warm_up);
  if (step >= steps) return peak * end_share;
  const double done = static_cast<double>(step - warm_up) / static_cast<double>(steps - warm_up);
  return peak * (end_share + (1 - end_share) * (1 + std::cos(std::numbers::pi * done)) / 2);
}

double clip_norm(std::span<float> gradient, double most) {
  double squares = 0;
  for (const float number : gradient) squares += static_cast<double>(number) * number;
  const double length = std::sqrt(squares);
  if (most > 0 && length > most) {
    const auto factor = static_cast<float>(most / length);
    for (float& number : gradient) number *= factor;
  }
  return length;
}

AdamW::AdamW(const Settings& settings, std::size_t parameters)
    : settings_(settings), first_(parameters), second_(parameters) {}

void AdamW::step(std::span<float> parameters, std::span<const float> gradient, double rate) {
  assert(parameters.size() == first_.size() && gradient.size() == first_.size());
  ++steps_;
  const auto beta1 = static_cast<float>(settings_.beta1);
  const auto beta2 = static_cast<float>(settings_.beta2);
  const auto first_scale = static_cast<float>(1 / (1 - std::pow(settings_.beta1, static_cast<double>(steps_))));
  const auto second_scale = static_cast<float>(1 / (1 - std::pow(settings_.beta2, static_cast<double>(steps_))));
  const auto epsilon = static_cast<float>(settings_.epsilon);
  const auto step = static_cast<float>(rate);
  const auto kept = static_cast<float>(1 - rate * settings_.weight_decay);
  for (std::size_t i = 0; i < first_.size(); ++i) {
    const float g = gradient[i];
    first_[i] = beta1 * first_[i] + (1 - beta1) * g;
    second_[i] = beta2 * second_[i] + (1 - beta2) * g * g;
    parameters[i] =
        kept * parameters[i] - step * first_[i] * first_scale / (std::sqrt(second_[i] * second_scale) + epsilon);
  }
}

void AdamW::restore(std::uint64_t steps, std::span<const float> first, std::span<const float> second) {
  assert(first.size() == first_.size() && second.size() == second_.size());
  steps_ = steps;
  std::ranges::copy(first, first_.begin());
  std::ranges::copy(second, second_.begin());
}

}  // namespace molly::training
