#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/memory/eviction.h"

namespace molly::engine {

// Which of the adapters in the pool is cheapest to lose. The one that is needed must become resident, so the choice of
// the victim is the whole policy.
//
// An adapter's frequency is a count of its uses that halves every so many uses of all adapters (LRFU, Lee et al., IEEE
// ToC 50(12), 2001). How fast to forget depends on the load: a steady one wants a long memory, a drifting one a short
// one. So several half-lives run side by side, each with a directory of what it would have kept, and the one whose
// directory was hit most often of late decides (as ARC and LeCaR do with ghost lists). Counting in uses and not in
// seconds makes the choice independent of how busy the engine is.
class ResidencyPolicy {
 public:
  using Clock = UseRate::Clock;
  using Id = std::uint32_t;

  // `room`: about how many adapters fit, for the directories.
  void on_use(Id id, std::uint32_t room, Clock::time_point now);
  void forget(Id id);

  // Expected: this adapter's share of the uses, times the uses per second of all.
  double uses_per_second(Id id, Clock::time_point now) const;

  struct Resident {
    Id id = 0;
    double milliseconds_to_restore = 0;
    std::uint32_t pages = 0;
  };
  double score(const Resident& resident, Clock::time_point now) const;
  // The position in `among` of the lowest score, the least recently used of equals. `among` is not empty.
  std::size_t pick_victim(std::span<const Resident> among, Clock::time_point now) const;

  // In uses of all adapters. The first is nearly LRU, the last nearly LFU.
  static constexpr std::array<double, 5> half_lives{4, 64, 512, 4096, 32768};

 private:
  // As of the adapter's last use, for each half-life.
  struct History {
    std::array<double, half_lives.size()> weights{};
    std::array<bool, half_lives.size()> listed{};
    std::uint64_t last_use = 0;
  };
  struct Directory {
    std::vector<Id> ids;
    double hits = 0;  // decaying
  };

  double weight(const History& history, std::size_t memory) const;
  void list(Id id, std::size_t memory, std::uint32_t room);
  void drop_lightest(std::size_t memory);
  void choose();

  std::unordered_map<Id, History> histories_;
  std::array<Directory, half_lives.size()> directories_;
  std::size_t chosen_ = half_lives.size() / 2;
  std::uint64_t uses_ = 0;
  UseRate all_;
};

}  // namespace molly::engine
