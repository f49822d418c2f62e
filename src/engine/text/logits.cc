#include "engine/text/logits.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace molly::engine {
namespace {

constexpr std::size_t lanes = 16;
constexpr float lowest = -std::numeric_limits<float>::infinity();

float greatest(std::span<const float> values) {
  std::array<float, lanes> best;
  best.fill(lowest);
  std::size_t at = 0;
  for (; at + lanes <= values.size(); at += lanes) {
    const float* block = values.data() + at;
    for (std::size_t lane = 0; lane < lanes; ++lane) best[lane] = block[lane] > best[lane] ? block[lane] : best[lane];
  }
  for (; at < values.size(); ++at) best[0] = values[at] > best[0] ? values[at] : best[0];
  return *std::ranges::max_element(best);
}

// e^x for x <= 0: 2^(x log2 e), the fraction by a polynomial of degree 5 (Taylor about the nearest whole power).
float exp_of_negative(float x) {
  const float power = (x > -87.0F ? x : -87.0F) * 1.44269504F;  // a NaN counts as nothing
  const auto whole = static_cast<std::int32_t>(power - 0.5F);
  const float t = (power - static_cast<float>(whole)) * 0.69314718F;
  const float fraction = 1 + t * (1 + t * (0.5F + t * (0.16666667F + t * (0.041666667F + t * 0.0083333333F))));
  return fraction * std::bit_cast<float>((whole + 127) << 23);
}

bool ahead(const ScoredToken& left, const ScoredToken& right) {
  return left.logit > right.logit || (left.logit == right.logit && left.token < right.token);
}

}  // namespace

Token most_likely_token(std::span<const float> logits) {
  constexpr std::size_t block = 1024;
  float best = lowest;
  std::size_t where = 0;
  for (std::size_t at = 0; at < logits.size(); at += block) {
    const float here = greatest(logits.subspan(at, std::min(block, logits.size() - at)));
    if (here > best) {
      best = here;
      where = at;
    }
  }
  const auto in_block = logits.subspan(where, std::min(block, logits.size() - where));
  const auto found = std::ranges::find(in_block, best);
  return found == in_block.end() ? 0 : static_cast<Token>(where + (found - in_block.begin()));
}

std::vector<ScoredToken> most_likely_tokens(std::span<const float> logits, std::size_t count) {
  if (count == 0) return {};
  std::vector<ScoredToken> heap;  // the least of those kept in front
  heap.reserve(std::min(count, logits.size()) + 1);
  const auto least = [&] { return heap.size() < count ? lowest : heap.front().logit; };
  const auto offer = [&](std::size_t token) {
    if (!(logits[token] > least())) return;
    heap.push_back({static_cast<Token>(token), logits[token]});
    std::ranges::push_heap(heap, ahead);
    if (heap.size() <= count) return;
    std::ranges::pop_heap(heap, ahead);
    heap.pop_back();
  };
  for (std::size_t at = 0; at < logits.size(); at += lanes) {
    const std::size_t end = std::min(at + lanes, logits.size());
    if (!(greatest(logits.subspan(at, end - at)) > least())) continue;
    for (std::size_t token = at; token < end; ++token) offer(token);
  }
  std::ranges::sort(heap, ahead);
  return heap;
}

float log_sum_exp(std::span<const float> logits) {
  const float most = greatest(logits);
  if (most == lowest) return lowest;
  std::array<float, lanes> sums{};
  double total = 0;
  std::size_t at = 0;
  for (; at + lanes <= logits.size(); at += lanes) {
    const float* block = logits.data() + at;
    for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += exp_of_negative(block[lane] - most);
  }
  for (; at < logits.size(); ++at) total += std::exp(static_cast<double>(logits[at] - most));
  for (const float sum : sums) total += static_cast<double>(sum);
  return most + static_cast<float>(std::log(total));
}

}  // namespace molly::engine
