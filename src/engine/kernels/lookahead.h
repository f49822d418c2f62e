#pragma once

#include <cstddef>

#include "engine/kernels/inline.h"
#include "engine/kernels/prefetcher.h"

namespace molly::engine {
namespace {

constexpr std::size_t divided_up(std::size_t number, std::size_t by) { return (number + by - 1) / by; }

// Asks the memory for rows that are read next, evenly over the work that goes on meanwhile and in the order of memory:
// in bursts or head by head this takes up to twice as long.
class Lookahead {
 public:
  // `bytes` from `first_byte` of each key and value row [begin, end), over `calls` calls.
  Lookahead(const std::byte* const* keys, const std::byte* const* values, std::size_t begin, std::size_t end,
            std::size_t first_byte, std::size_t bytes, std::size_t calls)
      : keys_(keys),
        values_(values),
        row_(begin),
        end_(end),
        first_byte_(first_byte),
        bytes_(bytes),
        lines_(divided_up((end - begin) * divided_up(bytes, cache_line), calls)) {}

  MOLLY_INLINE void ask() {
    for (std::size_t line = 0; line < lines_ && row_ < end_; ++line) {
      __builtin_prefetch(keys_[row_] + first_byte_ + byte_);
      __builtin_prefetch(values_[row_] + first_byte_ + byte_);
      byte_ += cache_line;
      if (byte_ < bytes_) continue;
      byte_ = 0;
      ++row_;
    }
  }

 private:
  const std::byte* const* keys_;
  const std::byte* const* values_;
  std::size_t row_;
  std::size_t end_;
  std::size_t first_byte_;
  std::size_t bytes_;
  std::size_t lines_;
  std::size_t byte_ = 0;
};

}  // namespace
}  // namespace molly::engine
