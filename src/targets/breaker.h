#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>

namespace molly::targets {

// Circuit breaker of one target. Closed: everything passes. After `threshold` failures in a row it
// opens for a time that doubles from `first_open` to `longest_open`; then one probe passes (half-open):
// its success closes, its failure opens again. Thread-safe; time is a parameter, so that it can be tested.
class Breaker {
 public:
  using Clock = std::chrono::steady_clock;
  struct Settings {
    std::uint32_t threshold = 5;
    std::chrono::milliseconds first_open{1000};
    std::chrono::milliseconds longest_open{30000};
  };
  enum class State : std::uint8_t { closed, open, half_open };

  Breaker() = default;
  explicit Breaker(Settings settings) : settings_(settings) {}

  // True when a request may be sent now. In the half-open state only the first caller gets true,
  // and must report `succeeded`, `failed` or `abandoned`.
  bool try_pass(Clock::time_point now);
  void succeeded();
  void failed(Clock::time_point now);
  // The request ended without saying anything about the target (client left, request rejected).
  void abandoned();

  State state(Clock::time_point now) const;
  // How long until a probe may pass; nothing when closed.
  std::optional<std::chrono::milliseconds> opens_for(Clock::time_point now) const;

 private:
  Settings settings_;
  mutable std::mutex mutex_;
  State state_ = State::closed;
  bool probe_out_ = false;
  std::uint32_t failures_in_a_row_ = 0;
  std::chrono::milliseconds open_time_{0};
  Clock::time_point open_until_;
};

std::string_view to_string(Breaker::State state);

}  // namespace molly::targets
