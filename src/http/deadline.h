#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>

namespace molly::http {

class DeadlineSweep;

// A deadline that costs next to nothing to move: arming stores a time, and one timer for the whole
// io_context looks at all armed deadlines every 50 ms. It never fires early, and late by at most about
// 100 ms. Belongs to one io_context and is used only on its thread; must be destroyed there too (or after
// the context stopped). The callback may arm, disarm or destroy any deadline, its own included.
class Deadline {
 public:
  static constexpr std::chrono::milliseconds granularity{50};

  Deadline(boost::asio::io_context& context, std::function<void()> expired);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  // From now on; replaces an earlier one.
  void arm(std::chrono::milliseconds after);
  // Later than armed for; nothing when it is not armed.
  void extend(std::chrono::milliseconds by);
  void disarm();
  bool armed() const { return armed_; }

 private:
  friend class DeadlineSweep;
  DeadlineSweep& sweep_;
  std::shared_ptr<std::function<void()>> expired_;
  std::chrono::milliseconds after_{};
  std::chrono::steady_clock::time_point when_{};
  Deadline* previous_ = nullptr;
  Deadline* next_ = nullptr;
  bool linked_ = false;
  bool armed_ = false;
  bool fresh_ = false;  // armed since the last look
};

}  // namespace molly::http
