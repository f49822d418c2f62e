#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace molly::training {

// From `warm_up` steps of linear rise through a cosine (Loshchilov and Hutter, SGDR, arXiv 1608.03983, equation 5) to
// end_share of the peak.
struct RateSchedule {
  double peak = 1e-3;
  std::uint64_t steps = 0;
  std::uint64_t warm_up = 0;
  double end_share = 0.1;

  double at(std::uint64_t step) const;  // step from 1
};

// Scales `gradient` to at most this Euclidean length; returns the length before. Zero: no bound. The same numbers give
// the same length whatever else the process does.
double clip_norm(std::span<float> gradient, double most);

// Loshchilov and Hutter, Decoupled Weight Decay Regularization, arXiv 1711.05101, algorithm 2.
class AdamW {
 public:
  struct Settings {
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    double weight_decay = 0;
  };

  AdamW(const Settings& settings, std::size_t parameters);

  // All of the constructor's number of parameters.
  void step(std::span<float> parameters, std::span<const float> gradient, double rate);

  // What a checkpoint keeps.
  std::uint64_t steps() const { return steps_; }
  std::span<const float> first_moments() const { return first_; }
  std::span<const float> second_moments() const { return second_; }
  void restore(std::uint64_t steps, std::span<const float> first, std::span<const float> second);

 private:
  Settings settings_;
  std::uint64_t steps_ = 0;
  std::vector<float> first_;
  std::vector<float> second_;
};

}  // namespace molly::training
