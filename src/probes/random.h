#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace molly::probes {

// FNV-1a, 64 bits.
constexpr std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return hash;
}

// SplitMix64: the distributions of <random> differ between standard libraries. Never draw twice in one call's
// arguments, whose order the compiler chooses.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t mixed = (state_ += 0x9e3779b97f4a7c15);
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
  }

  // 0 to count-1. The bias of the remainder is below 2^-50 for the counts in use.
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(next() % count); }

  // Both ends are included.
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(below(static_cast<std::size_t>(most - least + 1)));
  }

  template <class List>
  const auto& pick(const List& list) {
    return list[below(list.size())];
  }

 private:
  std::uint64_t state_;
};

}  // namespace molly::probes
