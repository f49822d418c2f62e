#include "engine/kernels/lora.h"

#include <algorithm>
#include <cassert>
#include <optional>

#include "engine/kernels/kernel_set.h"
#include "engine/kernels/share.h"

namespace molly::engine {
namespace {

constexpr std::uint32_t block_numbers = 32;
// Rows of the batch and columns that fit the caches while the ranks of an adapter pass over them.
constexpr std::uint32_t rows_per_unit = 32;
constexpr std::uint32_t columns_per_strip = 512;

template <typename Number>
Number rounded_up(Number number, Number multiple) {
  return (number + multiple - 1) / multiple * multiple;
}

// The time that a stretch of factors takes, for `rows` rows: reading it costs about as much as using it four times.
constexpr std::uint64_t weight_of(std::uint64_t ranks, std::uint64_t rows) { return ranks * (4 + rows); }

// Units in the order in which a thread works on them, each told which rows the next one reads.
template <typename Unit, FactorRows Unit::* factor>
class Queue {
 public:
  explicit Queue(void (*run)(const Unit&)) : run_(run) {}

  // `skipped`: bytes of each row that the unit does not read.
  void push(const Unit& unit, std::size_t skipped) {
    if (waiting_) {
      FactorRows& rows = (*waiting_).*factor;
      for (std::uint32_t i = 0; i < ranks_per_unit; ++i) rows.ahead[i] = (unit.*factor).rows[i] + skipped - skipped_;
      run_(*waiting_);
    }
    waiting_ = unit;
    skipped_ = skipped;
  }

  void finish() {
    if (!waiting_) return;
    ((*waiting_).*factor).ahead = ((*waiting_).*factor).rows;
    run_(*waiting_);
  }

 private:
  void (*run_)(const Unit&);
  std::optional<Unit> waiting_;
  std::size_t skipped_ = 0;
};

// Unused places repeat the last row: prefetching it again costs nothing.
FactorRows factor_rows(FactorType type, std::span<const std::byte* const> rows, std::uint32_t first) {
  FactorRows taken{.type = type, .count = std::min(ranks_per_unit, static_cast<std::uint32_t>(rows.size()) - first)};
  for (std::uint32_t i = 0; i < ranks_per_unit; ++i) taken.rows[i] = rows[first + std::min(i, taken.count - 1)];
  return taken;
}

std::span<const LoraFactors> factors_of(const LoraLinear& linear, std::uint32_t adapter) {
  return linear.factors.subspan(adapter * linear.segments.size(), linear.segments.size());
}

std::size_t rank_sum(std::span<const LoraFactors> factors) {
  std::size_t sum = 0;
  for (const LoraFactors& each : factors) sum += each.rank();
  return sum;
}

std::uint64_t shrink_weight(const LoraLinear& linear) {
  std::uint64_t total = 0;
  for (const LoraRows& group : linear.rows) {
    const std::uint64_t ranks = rank_sum(factors_of(linear, group.adapter));
    total += weight_of(ranks, rows_per_unit) * (group.rows / rows_per_unit);
    if (const std::uint32_t rest = group.rows % rows_per_unit; rest != 0) total += weight_of(ranks, rest);
  }
  return total;
}

// Of one column of a segment.
std::uint64_t expand_weight(const LoraLinear& linear, std::size_t segment) {
  std::uint64_t total = 0;
  for (const LoraRows& group : linear.rows) {
    total += weight_of(factors_of(linear, group.adapter)[segment].rank(), group.rows);
  }
  return total;
}

void push_strip(Queue<ExpandUnit, &ExpandUnit::b>& queue, const LoraLinear& linear, std::size_t segment,
                std::uint32_t first_column, std::uint32_t columns, std::span<const float> hidden, MutableRows y) {
  for (const LoraRows& group : linear.rows) {
    const auto factors = factors_of(linear, group.adapter);
    const std::size_t ranks_in_all = rank_sum(factors);
    const std::size_t ranks_before = rank_sum(factors.first(segment));
    const LoraFactors& factor = factors[segment];
    for (std::uint32_t row = 0; row < group.rows; row += rows_per_unit) {
      for (std::uint32_t rank = 0; rank < factor.rank(); rank += ranks_per_unit) {
        const ExpandUnit unit{
            .b = factor_rows(factor.type, factor.b, rank),
            .first_column = first_column,
            .columns = columns,
            .rows = std::min(rows_per_unit, group.rows - row),
            .hidden = &hidden[group.hidden + row * ranks_in_all + ranks_before + rank],
            .hidden_stride = ranks_in_all,
            .y = {row_of(y, group.first_row + row) + linear.segments[segment].first_column + first_column, y.stride}};
        queue.push(unit, row_bytes(factor.type, first_column));
      }
    }
  }
}

bool is_decode(const LoraLinear& linear) {
  return std::ranges::all_of(linear.rows, [](const LoraRows& group) { return group.rows <= 4; });
}

}  // namespace

std::size_t row_bytes(FactorType type, std::size_t elements) {
  if (type == FactorType::f16) return elements * 2;
  assert(elements % block_numbers == 0);
  return elements / block_numbers * 34;
}

void lora_shrink(Isa isa, const LoraLinear& linear, ConstRows x, std::span<float> hidden, int thread, int threads) {
  const Share share = share_of(shrink_weight(linear), thread, threads);
  Queue<ShrinkUnit, &ShrinkUnit::a> queue(kernel_set(isa).shrink);
  std::uint64_t passed = 0;
  for (const LoraRows& group : linear.rows) {
    const auto factors = factors_of(linear, group.adapter);
    const std::size_t ranks_in_all = rank_sum(factors);
    for (std::uint32_t row = 0; row < group.rows; row += rows_per_unit) {
      const std::uint32_t rows = std::min(rows_per_unit, group.rows - row);
      float* hidden_row = hidden.data() + group.hidden + row * ranks_in_all;
      for (const LoraFactors& factor : factors) {
        for (std::uint32_t rank = 0; rank < factor.rank(); rank += ranks_per_unit) {
          const std::uint32_t ranks = std::min(ranks_per_unit, factor.rank() - rank);
          if (share.has(passed)) {
            queue.push({.a = factor_rows(factor.type, factor.a, rank),
                        .n_in = linear.n_in,
                        .rows = rows,
                        .scale = group.weight * factor.scale,
                        .x = {row_of(x, group.first_row + row), x.stride},
                        .hidden = hidden_row,
                        .hidden_stride = ranks_in_all},
                       0);
          }
          passed += weight_of(ranks, rows);
          hidden_row += ranks;
        }
      }
    }
  }
  queue.finish();
}

void lora_expand(Isa isa, const LoraLinear& linear, std::span<const float> hidden, MutableRows y, int thread,
                 int threads) {
  std::uint64_t total = 0;
  for (std::size_t segment = 0; segment < linear.segments.size(); ++segment) {
    total += expand_weight(linear, segment) * rounded_up(linear.segments[segment].columns, block_numbers);
  }
  const Share share = share_of(total, thread, threads);
  Queue<ExpandUnit, &ExpandUnit::b> queue(kernel_set(isa).expand);
  std::uint64_t passed = 0;
  for (std::size_t segment = 0; segment < linear.segments.size(); ++segment) {
    const std::uint64_t block_weight = expand_weight(linear, segment) * block_numbers;
    if (block_weight == 0) continue;
    const std::uint32_t columns = linear.segments[segment].columns;
    const std::uint32_t blocks = rounded_up(columns, block_numbers) / block_numbers;
    const std::uint32_t end = std::min(columns, share.reached(passed, block_weight, blocks) * block_numbers);
    const std::uint32_t strip = is_decode(linear) ? columns : columns_per_strip;
    for (std::uint32_t first = share.skipped(passed, block_weight, blocks) * block_numbers; first < end;
         first += strip) {
      push_strip(queue, linear, segment, first, std::min(strip, end - first), hidden, y);
    }
    passed += block_weight * blocks;
  }
  queue.finish();
}

std::vector<MemoryRun> memory_of(const LoraLinear& linear) {
  std::vector<MemoryRun> runs;
  runs.reserve(2 * rank_sum(linear.factors));
  const auto add = [&](FactorType type, std::span<const std::byte* const> rows, std::uint32_t numbers) {
    const auto lines = static_cast<std::uint32_t>(rounded_up(row_bytes(type, numbers), cache_line) / cache_line);
    for (const std::byte* row : rows) runs.push_back({row, lines});
  };
  for (const LoraFactors& factors : linear.factors) add(factors.type, factors.a, linear.n_in);
  for (std::size_t i = 0; i < linear.factors.size(); ++i) {
    add(linear.factors[i].type, linear.factors[i].b, linear.segments[i % linear.segments.size()].columns);
  }
  return runs;
}

std::size_t place_hidden(std::span<LoraRows> rows, std::span<const std::uint32_t> rank_sums) {
  std::size_t placed = 0;
  for (LoraRows& group : rows) {
    group.hidden = placed;
    placed += rounded_up(std::size_t{group.rows} * rank_sums[group.adapter], cache_line / sizeof(float));
  }
  return placed;
}

}  // namespace molly::engine
