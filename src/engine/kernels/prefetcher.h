#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/kernels/inline.h"

namespace molly::engine {

inline constexpr std::size_t cache_line = 64;

// A stretch of memory; begins at a cache line.
struct MemoryRun {
  const std::byte* begin = nullptr;
  std::uint32_t lines = 0;
};

// Asks the memory for what is read soon after a computation, evenly while that goes on, into the second-level cache:
// a product of few rows leaves most of the memory's bandwidth unused. Every thread of a pool asks for its share.
class Prefetcher {
 public:
  Prefetcher() = default;  // asks for nothing

  // ask() will be called `calls` times.
  Prefetcher(std::span<const MemoryRun> runs, std::size_t thread, std::size_t threads, std::size_t calls)
      : runs_(runs), next_(thread), stride_(threads) {
    std::size_t lines = 0;
    for (std::size_t i = thread; i < runs.size(); i += threads) lines += runs[i].lines;
    lines_for_each_call_ = calls == 0 ? 0 : (lines + calls - 1) / calls;
    if (lines_for_each_call_ > 0) begin_run();
  }

  MOLLY_INLINE void ask() {
    for (std::size_t line = 0; line < lines_for_each_call_; ++line) {
      if (at_ == end_ && !begin_run()) return;
      __builtin_prefetch(at_, 0, 2);
      at_ += cache_line;
    }
  }

 private:
  bool begin_run() {
    if (next_ >= runs_.size()) {
      lines_for_each_call_ = 0;
      return false;
    }
    at_ = runs_[next_].begin;
    end_ = at_ + runs_[next_].lines * cache_line;
    next_ += stride_;
    return true;
  }

  std::span<const MemoryRun> runs_;
  std::size_t next_ = 0;
  std::size_t stride_ = 1;
  std::size_t lines_for_each_call_ = 0;
  const std::byte* at_ = nullptr;
  const std::byte* end_ = nullptr;
};

}  // namespace molly::engine
