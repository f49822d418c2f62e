#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "engine/memory/adapter_cache.h"

namespace molly::engine {

// What a piece of work costs by its bytes, learnt from what it did cost.
class MeasuredCost {
 public:
  explicit MeasuredCost(double milliseconds_per_mebibyte) : per_mebibyte_(milliseconds_per_mebibyte) {}

  void note(std::uint64_t bytes, double milliseconds) {
    if (bytes > 0) per_mebibyte_ += (milliseconds / mebibytes(bytes) - per_mebibyte_) * weight_of_last;
  }
  double milliseconds(std::uint64_t bytes) const { return per_mebibyte_ * mebibytes(bytes); }

 private:
  static constexpr double weight_of_last = 0.2;
  static double mebibytes(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

  double per_mebibyte_;
};

// A registered adapter and what of it is where.
struct AdapterRecord {
  using Clock = AdapterCache::Clock;

  AdapterStatus status;
  std::filesystem::path file;
  std::optional<AdapterImage> image;          // in host memory; may be kept or dropped while hot
  std::uint64_t image_used = 0;               // when, in a count of such moments
  std::vector<PageId> pages;                  // in the pool; of hot ones only
  std::unique_ptr<ResidentAdapter> resident;  // of hot ones only
  std::optional<Clock::time_point> wanted;    // when a sequence last asked for it in vain
  std::optional<Error> error;                 // of failed ones only
  Clock::time_point failed{};
  bool removed = false;  // but still held by sequences

  AdapterState& state() { return status.state; }
  bool is_hot() const { return status.state == AdapterState::hot; }
  bool is_idle(const PagePool& pool) const {
    const bool alone = pages.empty() || pool.references(pages.front()) == 1;
    return is_hot() && status.users == 0 && alone;
  }
  bool is_wanted(Clock::time_point now) const;
};

}  // namespace molly::engine
