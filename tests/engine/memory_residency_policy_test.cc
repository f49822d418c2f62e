#include "engine/memory/residency_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <vector>

namespace molly::engine {
namespace {

using namespace std::chrono_literals;
using Trace = std::vector<std::uint32_t>;

constexpr std::uint32_t adapters = 1000;
constexpr std::uint32_t room = 16;
constexpr std::size_t requests = 40'000;

std::discrete_distribution<std::uint32_t> zipf(double exponent) {
  std::vector<double> weights(adapters);
  for (std::uint32_t rank = 0; rank < adapters; ++rank) weights[rank] = std::pow(rank + 1.0, -exponent);
  return {weights.begin(), weights.end()};
}

// `change` may rearrange who has which rank before each request.
template <class Change>
Trace zipf_trace(double exponent, unsigned seed, Change&& change) {
  std::mt19937 random(seed);
  auto rank = zipf(exponent);
  std::vector<std::uint32_t> by_rank(adapters);
  std::iota(by_rank.begin(), by_rank.end(), 0U);
  std::ranges::shuffle(by_rank, random);
  Trace trace;
  for (std::size_t i = 0; i < requests; ++i) {
    change(i, by_rank, random);
    trace.push_back(by_rank[rank(random)]);
  }
  return trace;
}

Trace stationary(unsigned seed) {
  return zipf_trace(1.1, seed, [](auto...) {});
}

// A new favourite comes up from the crowd again and again, and the others fall a rank.
Trace drifting(unsigned seed, std::size_t period) {
  return zipf_trace(1.1, seed, [=](std::size_t i, auto& by_rank, auto& random) {
    if (i % period != 0) return;
    const auto riser = by_rank.begin() + 32 + static_cast<long>(random() % (adapters - 32));
    std::rotate(by_rank.begin(), riser, riser + 1);
  });
}

// Everything changes at once, as when another team starts its working day.
Trace shifting(unsigned seed) {
  return zipf_trace(1.1, seed, [](std::size_t i, auto& by_rank, auto& random) {
    if (i % 10'000 == 0) std::ranges::shuffle(by_rank, random);
  });
}

// Runs a cache that must take in what is requested; `victim(residents, position)` says which one goes.
template <class Use, class Victim>
double hit_rate(const Trace& trace, Use&& use, Victim&& victim) {
  std::vector<std::uint32_t> residents;
  std::size_t hits = 0;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    const bool hit = std::ranges::contains(residents, trace[i]);
    hits += hit ? 1U : 0U;
    if (!hit && residents.size() == room) residents.erase(residents.begin() + static_cast<long>(victim(residents, i)));
    if (!hit) residents.push_back(trace[i]);
    use(trace[i], i);
  }
  return static_cast<double>(hits) / static_cast<double>(trace.size());
}

double with_policy(const Trace& trace) {
  ResidencyPolicy policy;
  const auto time = [](std::size_t i) { return ResidencyPolicy::Clock::time_point(1h) + i * 50ms; };
  return hit_rate(
      trace, [&](std::uint32_t id, std::size_t i) { policy.on_use(id, room, time(i)); },
      [&](const auto& residents, std::size_t i) {
        std::vector<ResidencyPolicy::Resident> among;
        for (const auto id : residents) among.push_back({.id = id, .milliseconds_to_restore = 3, .pages = 5});
        return policy.pick_victim(among, time(i));
      });
}

// The resident with the smallest value, as which the policies of the textbook can be written.
template <class Value>
std::size_t smallest(const std::vector<std::uint32_t>& residents, const Value& value) {
  return static_cast<std::size_t>(std::ranges::min_element(residents, {}, value) - residents.begin());
}

double with_lru(const Trace& trace) {
  std::vector<std::size_t> last(adapters);
  return hit_rate(
      trace, [&](std::uint32_t id, std::size_t i) { last[id] = i; },
      [&](const auto& residents, std::size_t) { return smallest(residents, [&](auto id) { return last[id]; }); });
}

double with_lfu(const Trace& trace) {
  std::vector<std::size_t> count(adapters);
  return hit_rate(
      trace, [&](std::uint32_t id, std::size_t) { ++count[id]; },
      [&](const auto& residents, std::size_t) { return smallest(residents, [&](auto id) { return count[id]; }); });
}

// The best set that never changes, chosen with hindsight, and there from the start.
double with_static_best(const Trace& trace) {
  std::vector<std::size_t> count(adapters);
  for (const auto id : trace) ++count[id];
  std::ranges::sort(count, std::greater());
  return static_cast<double>(std::accumulate(count.begin(), count.begin() + room, std::size_t{0})) /
         static_cast<double>(trace.size());
}

// Belady's optimum: whoever is needed latest goes.
double with_foresight(const Trace& trace) {
  std::vector<std::size_t> next_use(trace.size());
  std::vector<std::size_t> seen(adapters, trace.size());
  for (std::size_t i = trace.size(); i-- > 0;) {
    next_use[i] = seen[trace[i]];
    seen[trace[i]] = i;
  }
  std::vector<long> next(adapters);
  return hit_rate(
      trace, [&](std::uint32_t id, std::size_t i) { next[id] = static_cast<long>(next_use[i]); },
      [&](const auto& residents, std::size_t) { return smallest(residents, [&](auto id) { return -next[id]; }); });
}

struct HitRates {
  double ours, lru, lfu, static_best, optimum;
};

HitRates compare(const char* name, const Trace& trace) {
  const HitRates rates{with_policy(trace), with_lru(trace), with_lfu(trace), with_static_best(trace),
                       with_foresight(trace)};
  std::printf("%-28s ours %.4f  LRU %.4f  LFU %.4f  static best %.4f  offline optimum %.4f\n", name, rates.ours,
              rates.lru, rates.lfu, rates.static_best, rates.optimum);
  return rates;
}

TEST(ResidencyPolicy, comes_within_a_twentieth_of_the_best_fixed_set_on_a_steady_load) {
  for (const unsigned seed : {1U, 2U, 3U}) {
    const auto rates = compare("steady Zipf(1.1)", stationary(seed));
    EXPECT_GE(rates.ours, 0.95 * rates.static_best);
    EXPECT_GT(rates.ours, rates.lru);
  }
}

TEST(ResidencyPolicy, beats_lru_lfu_and_any_fixed_set_on_a_drifting_load) {
  for (const unsigned seed : {1U, 2U}) {
    for (const std::size_t period : {100U, 1000U, 4000U}) {
      const auto name = "new favourite every " + std::to_string(period);
      const auto rates = compare(name.c_str(), drifting(seed, period));
      EXPECT_GT(rates.ours, std::max({rates.lru, rates.lfu, rates.static_best}));
    }
  }
}

TEST(ResidencyPolicy, beats_lru_lfu_and_any_fixed_set_when_everything_changes_at_times) {
  for (const unsigned seed : {1U, 2U}) {
    const auto rates = compare("all new every 10000", shifting(seed));
    EXPECT_GT(rates.ours, std::max({rates.lru, rates.lfu, rates.static_best}));
  }
}

}  // namespace
}  // namespace molly::engine
