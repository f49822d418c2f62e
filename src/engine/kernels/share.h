#pragma once

#include <cstdint>

namespace molly::engine {

// The part [begin, end) of a total weight of work that is one thread's. What starts in it is the thread's to do.
struct Share {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  bool has(std::uint64_t place) const { return begin <= place && place < end; }

  // Of items of equal weight, the first of which starts at `place`: how many start before this share, and before its
  // end.
  std::uint32_t skipped(std::uint64_t place, std::uint64_t weight, std::uint32_t count) const {
    return items_before(begin, place, weight, count);
  }
  std::uint32_t reached(std::uint64_t place, std::uint64_t weight, std::uint32_t count) const {
    return items_before(end, place, weight, count);
  }

 private:
  static std::uint32_t items_before(std::uint64_t border, std::uint64_t place, std::uint64_t weight,
                                    std::uint32_t count) {
    if (border <= place) return 0;
    const std::uint64_t items = (border - place + weight - 1) / weight;
    return items < count ? static_cast<std::uint32_t>(items) : count;
  }
};

inline Share share_of(std::uint64_t total, int thread, int threads) {
  const auto cut = [&](int t) { return total * static_cast<std::uint64_t>(t) / static_cast<std::uint64_t>(threads); };
  return {cut(thread), cut(thread + 1)};
}

}  // namespace molly::engine
