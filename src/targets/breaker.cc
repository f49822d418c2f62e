#include "targets/breaker.h"

#include <algorithm>

namespace molly::targets {

bool Breaker::try_pass(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (state_ == State::closed) return true;
  if (state_ == State::open && now < open_until_) return false;
  if (probe_out_) return false;
  state_ = State::half_open;
  probe_out_ = true;
  return true;
}

void Breaker::succeeded() {
  const std::lock_guard lock(mutex_);
  state_ = State::closed;
  probe_out_ = false;
  failures_in_a_row_ = 0;
  open_time_ = std::chrono::milliseconds{0};
}

void Breaker::failed(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  ++failures_in_a_row_;
  const bool probe_failed = state_ == State::half_open;
  if (!probe_failed && failures_in_a_row_ < settings_.threshold) return;
  if (state_ == State::open && now < open_until_) return;
  open_time_ = std::clamp(open_time_ * 2, settings_.first_open, settings_.longest_open);
  open_until_ = now + open_time_;
  state_ = State::open;
  probe_out_ = false;
}

void Breaker::abandoned() {
  const std::lock_guard lock(mutex_);
  probe_out_ = false;
}

Breaker::State Breaker::state(Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  if (state_ == State::open && now >= open_until_) return State::half_open;
  return state_;
}

std::optional<std::chrono::milliseconds> Breaker::opens_for(Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  if (state_ != State::open || now >= open_until_) return std::nullopt;
  return std::chrono::ceil<std::chrono::milliseconds>(open_until_ - now);
}

std::string_view to_string(Breaker::State state) {
  switch (state) {
    case Breaker::State::closed: return "closed";
    case Breaker::State::open: return "open";
    case Breaker::State::half_open: return "half_open";
  }
  return "closed";
}

}  // namespace molly::targets
