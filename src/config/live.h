#pragma once

#include <atomic>
#include <memory>
#include <utility>

namespace molly::config {

// The value in force, replaced as a whole: whoever took a snapshot keeps it unchanged to the end of their
// work, and no reader ever sees half of two. Any thread may read and replace; a read costs two atomic
// operations and blocks on nothing.
template <class Value>
class Live {
 public:
  explicit Live(std::shared_ptr<const Value> first) : current_(std::move(first)) {}
  explicit Live(Value first) : current_(std::make_shared<const Value>(std::move(first))) {}

  std::shared_ptr<const Value> snapshot() const { return current_.load(std::memory_order_acquire); }
  void replace(std::shared_ptr<const Value> next) { current_.store(std::move(next), std::memory_order_release); }
  void replace(Value next) { replace(std::make_shared<const Value>(std::move(next))); }

 private:
  std::atomic<std::shared_ptr<const Value>> current_;
};

}  // namespace molly::config
