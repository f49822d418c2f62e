#include "engine/memory/residency_policy.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>
#include <utility>

namespace molly::engine {
namespace {

// Uses after which a directory's hit counts half.
constexpr double judging_half_life = 2000;

}  // namespace

void ResidencyPolicy::on_use(Id id, std::uint32_t room, Clock::time_point now) {
  ++uses_;
  all_.note_use(now);
  History& history = histories_[id];
  for (std::size_t memory = 0; memory < half_lives.size(); ++memory) {
    auto& directory = directories_[memory];
    directory.hits = directory.hits * std::exp2(-1 / judging_half_life) + (history.listed[memory] ? 1 : 0);
    history.weights[memory] = weight(history, memory) + 1;
  }
  history.last_use = uses_;
  for (std::size_t memory = 0; memory < half_lives.size(); ++memory) list(id, memory, std::max(room, 1U));
  choose();
}

void ResidencyPolicy::forget(Id id) {
  histories_.erase(id);
  for (auto& directory : directories_) std::erase(directory.ids, id);
}

double ResidencyPolicy::weight(const History& history, std::size_t memory) const {
  const auto age = static_cast<double>(uses_ - history.last_use);
  return history.weights[memory] * std::exp2(-age / half_lives[memory]);
}

void ResidencyPolicy::list(Id id, std::size_t memory, std::uint32_t room) {
  auto& [ids, hits] = directories_[memory];
  bool& listed = histories_.at(id).listed[memory];
  if (!listed) {
    while (ids.size() >= room) drop_lightest(memory);
    ids.push_back(id);
    listed = true;
  }
  while (ids.size() > room) drop_lightest(memory);
}

void ResidencyPolicy::drop_lightest(std::size_t memory) {
  auto& ids = directories_[memory].ids;
  const auto lightest = std::ranges::min_element(ids, {}, [&](Id id) {
    const History& history = histories_.at(id);
    return std::pair(weight(history, memory), history.last_use);
  });
  histories_.at(*lightest).listed[memory] = false;
  *lightest = ids.back();
  ids.pop_back();
}

void ResidencyPolicy::choose() {
  const auto best = std::ranges::max_element(directories_, {}, &Directory::hits);
  if (best->hits > directories_[chosen_].hits) chosen_ = static_cast<std::size_t>(best - directories_.begin());
}

double ResidencyPolicy::uses_per_second(Id id, Clock::time_point now) const {
  const auto found = histories_.find(id);
  if (found == histories_.end()) return 0;
  // A steady stream of uses has a decayed count of half-life / ln 2: its share is the count over that, but while the
  // stream is shorter than the half-life, over what it can have counted so far.
  const double decay = 1 - std::exp2(-1 / half_lives[chosen_]);
  const double counted = 1 - std::exp2(-static_cast<double>(uses_) / half_lives[chosen_]);
  return weight(found->second, chosen_) * decay / counted * all_.rate(now);
}

double ResidencyPolicy::score(const Resident& resident, Clock::time_point now) const {
  return keep_score(uses_per_second(resident.id, now), resident.milliseconds_to_restore, resident.pages);
}

std::size_t ResidencyPolicy::pick_victim(std::span<const Resident> among, Clock::time_point now) const {
  assert(!among.empty());
  const auto last_use = [&](Id id) {
    const auto found = histories_.find(id);
    return found == histories_.end() ? 0 : found->second.last_use;
  };
  std::size_t victim = 0;
  auto lowest = std::pair(score(among[0], now), last_use(among[0].id));
  for (std::size_t i = 1; i < among.size(); ++i) {
    const auto candidate = std::pair(score(among[i], now), last_use(among[i].id));
    if (candidate < lowest) std::tie(victim, lowest) = std::pair(i, candidate);
  }
  return victim;
}

}  // namespace molly::engine
