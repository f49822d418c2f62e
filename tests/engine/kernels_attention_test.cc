#include "engine/kernels/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <thread>

#include "kernels_fixture.h"

namespace molly::engine {
namespace {

using testing::ElementsAreArray;

struct Shape {
  KvType type = KvType::f16;
  std::uint32_t n_head = 4;
  std::uint32_t n_head_kv = 2;
  std::uint32_t head_dim = 64;
  std::uint32_t page_tokens = 16;
};

struct Sequence {
  std::uint32_t first_position = 0;  // of the batch's rows
  std::uint32_t rows = 1;
};

// Sequences whose tokens are stored in shuffled pages full of NaN otherwise, and queries of some of their last tokens.
// Every number of a sequence depends on its own seed, the position and nothing else.
class Problem {
 public:
  Problem(const Shape& shape, std::vector<Sequence> sequences, std::uint32_t seed = 1)
      : shape_(shape), sequences_(std::move(sequences)), seed_(seed) {
    const std::size_t width = kv_width();
    row_bytes_ = shape.type == KvType::f16 ? width * 2 : width / 32 * 34;
    place_pages();
    for (std::size_t i = 0; i < sequences_.size(); ++i) {
      keys_.push_back(numbers(i, 1, width));
      values_.push_back(numbers(i, 2, width));
      append_rows(queries_, i, numbers(i, 3, query_width()), query_width());
    }
  }

  PagedKv kv() const {
    return {.base = const_cast<std::byte*>(pool_.data()),
            .page_stride = page_stride(),
            .key_offset = 64,
            .value_offset = 64 + shape_.page_tokens * row_bytes_ + 128,
            .row_bytes = row_bytes_,
            .page_tokens = shape_.page_tokens,
            .type = shape_.type,
            .n_head_kv = shape_.n_head_kv,
            .head_dim = shape_.head_dim};
  }

  // Stores the prompt before the batch's rows, then the batch's rows.
  void store(Isa isa, int threads) {
    std::ranges::fill(pool_, std::byte{0xff});
    for (const bool batch : {false, true}) {
      std::vector<SequenceRows> rows;
      std::vector<float> keys;
      std::vector<float> values;
      std::uint32_t first_row = 0;
      for (std::size_t i = 0; i < sequences_.size(); ++i) {
        const std::uint32_t first = batch ? sequences_[i].first_position : 0;
        const std::uint32_t count = batch ? sequences_[i].rows : sequences_[i].first_position;
        rows.push_back({first_row, count, first, pages_[i]});
        first_row += count;
        append_part(keys, keys_[i], first, count);
        append_part(values, values_[i], first, count);
      }
      for (int t = 0; t < threads; ++t) {
        const std::size_t stride = kv_width() * sizeof(float);
        store_rows(isa, kv(), kv().key_offset, rows, {keys.data(), stride}, t, threads);
        store_rows(isa, kv(), kv().value_offset, rows, {values.data(), stride}, t, threads);
      }
    }
  }

  std::vector<SequenceRows> batch() const {
    std::vector<SequenceRows> rows;
    std::uint32_t first_row = 0;
    for (std::size_t i = 0; i < sequences_.size(); ++i) {
      rows.push_back({first_row, sequences_[i].rows, sequences_[i].first_position, pages_[i]});
      first_row += sequences_[i].rows;
    }
    return rows;
  }

  void run_thread(Isa isa, std::vector<float>& output, int thread, int threads) const {
    const std::size_t head = shape_.head_dim * sizeof(float);
    const HeadRows query_rows{const_cast<float*>(queries_.data()), shape_.n_head * head, head};
    attend(isa, kv(), batch(), query_rows, shape_.n_head, scale(), {output.data(), shape_.n_head * head, head}, thread,
           threads);
  }

  std::vector<float> run(Isa isa, int threads) const {
    std::vector<float> output(queries_.size(), std::nanf(""));
    for (int t = 0; t < threads; ++t) run_thread(isa, output, t, threads);
    return output;
  }

  // The largest |result - reference|: values are of size 1, so weighted means are at most that.
  double error_of(const std::vector<float>& result) const {
    double worst = 0;
    std::size_t row = 0;
    for (std::size_t i = 0; i < sequences_.size(); ++i) {
      const auto keys = all_stored(i, kv().key_offset);
      const auto values = all_stored(i, kv().value_offset);
      for (std::uint32_t r = 0; r < sequences_[i].rows; ++r, ++row) {
        const std::size_t seen = sequences_[i].first_position + r + 1;
        for (std::uint32_t head = 0; head < shape_.n_head; ++head) {
          const std::size_t place = row * query_width() + head * shape_.head_dim;
          const auto expected = reference(std::span(keys).first(seen), values, &queries_[place], head);
          for (std::uint32_t d = 0; d < shape_.head_dim; ++d) {
            const double error = std::abs(result[place + d] - expected[d]);
            worst = error <= worst ? worst : error;  // NaN is the worst
          }
        }
      }
    }
    return worst;
  }

  std::size_t query_width() const { return std::size_t{shape_.n_head} * shape_.head_dim; }

  // What is stored of a token: all its numbers.
  std::vector<double> stored(std::size_t sequence, std::uint32_t position, std::size_t offset) const {
    const auto page = static_cast<std::size_t>(pages_[sequence][position / shape_.page_tokens]);
    const std::byte* row = pool_.data() + page * page_stride() + offset + position % shape_.page_tokens * row_bytes_;
    std::vector<double> numbers(kv_width());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = shape_.type == KvType::f16 ? half_at(row, i) : q8_at(row, i);
    }
    return numbers;
  }
  const std::vector<float>& keys(std::size_t sequence) const { return keys_[sequence]; }
  std::size_t kv_width() const { return std::size_t{shape_.n_head_kv} * shape_.head_dim; }
  const std::vector<std::byte>& pool() const { return pool_; }

 private:
  static std::uint32_t tokens(const Sequence& sequence) { return sequence.first_position + sequence.rows; }
  float scale() const { return 1 / std::sqrt(static_cast<float>(shape_.head_dim)); }
  std::size_t page_stride() const { return 64 + 2 * shape_.page_tokens * row_bytes_ + 256; }

  void place_pages() {
    std::vector<std::uint32_t> counts;
    for (const Sequence& each : sequences_) {
      counts.push_back((tokens(each) + shape_.page_tokens - 1) / shape_.page_tokens);
    }
    std::vector<PageId> ids(std::accumulate(counts.begin(), counts.end(), 0U));
    std::iota(ids.begin(), ids.end(), 0);
    std::ranges::shuffle(ids, Random(seed_).engine());
    auto next = ids.begin();
    for (const std::uint32_t count : counts) {
      pages_.emplace_back(next, next + count);
      next += count;
    }
    pool_.resize(ids.size() * page_stride());
  }

  std::vector<float> numbers(std::size_t sequence, std::uint32_t kind, std::size_t width) const {
    Random random(seed_ * 1000 + static_cast<std::uint32_t>(sequence) * 10 + kind);
    return random.normals(tokens(sequences_[sequence]) * width);
  }
  void append_rows(std::vector<float>& to, std::size_t sequence, const std::vector<float>& all, std::size_t width) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(sequences_[sequence].first_position * width);
    to.insert(to.end(), first, all.end());
  }
  void append_part(std::vector<float>& to, const std::vector<float>& all, std::uint32_t first, std::uint32_t count) {
    to.append_range(std::span(all).subspan(first * kv_width(), count * kv_width()));
  }

  using Rows = std::vector<std::vector<double>>;
  Rows all_stored(std::size_t sequence, std::size_t offset) const {
    Rows rows;
    for (std::uint32_t i = 0; i < tokens(sequences_[sequence]); ++i) rows.push_back(stored(sequence, i, offset));
    return rows;
  }

  std::vector<double> reference(std::span<const std::vector<double>> keys, const Rows& values, const float* query,
                                std::uint32_t head) const {
    const std::size_t first = head / (shape_.n_head / shape_.n_head_kv) * shape_.head_dim;
    std::vector<double> scores;
    for (const auto& key : keys) {
      scores.push_back(scale() * std::inner_product(query, query + shape_.head_dim, &key[first], 0.0));
    }
    const double largest = std::ranges::max(scores);
    double total = 0;
    std::vector<double> mean(shape_.head_dim);
    for (std::size_t token = 0; token < scores.size(); ++token) {
      const double weight = std::exp(scores[token] - largest);
      total += weight;
      for (std::uint32_t d = 0; d < shape_.head_dim; ++d) mean[d] += weight * values[token][first + d];
    }
    for (double& each : mean) each /= total;
    return mean;
  }

  Shape shape_;
  std::vector<Sequence> sequences_;
  std::uint32_t seed_;
  std::size_t row_bytes_ = 0;
  std::vector<std::byte> pool_;
  std::vector<std::vector<PageId>> pages_;
  std::vector<std::vector<float>> keys_;
  std::vector<std::vector<float>> values_;
  std::vector<float> queries_;
};

Shape random_shape(Random& random) {
  Shape shape;
  shape.type = random.one_of(std::array{KvType::f16, KvType::q8_0});
  shape.n_head_kv = random.whole(1, 3);
  shape.n_head = shape.n_head_kv * random.one_of(std::array{1U, 2U, 3U, 4U, 7U});
  shape.head_dim = random.one_of(std::array{32U, 64U, 96U, 128U, 256U});
  shape.page_tokens = random.one_of(std::array{1U, 16U, 20U, 64U, 128U});
  return shape;
}

TEST(Attention, random_batches_agree_with_double_precision_whatever_the_threads) {
  for (std::uint32_t seed = 0; seed < 25; ++seed) {
    Random random(seed);
    const Shape shape = random_shape(random);
    std::vector<Sequence> sequences(random.whole(1, 3));
    for (Sequence& each : sequences) {
      each = {.first_position = random.whole(0, 150), .rows = random.whole(0, 1) == 0 ? 1 : random.whole(2, 40)};
    }
    Problem problem(shape, sequences, seed);
    for (const Isa isa : supported_isas()) {
      problem.store(isa, 3);
      const auto result = problem.run(isa, 1);
      EXPECT_LT(problem.error_of(result), 3e-6) << to_string(isa) << " seed " << seed;
      for (const int threads : {2, 5}) EXPECT_EQ(problem.run(isa, threads), result) << to_string(isa);
    }
  }
}

TEST(Attention, threads_need_not_meet) {
  Problem problem({.n_head = 8, .n_head_kv = 4}, {{100, 1}, {5, 30}, {0, 1}});
  for (const Isa isa : supported_isas()) {
    problem.store(isa, 1);
    std::vector<float> output(problem.run(isa, 1).size());
    {
      std::vector<std::jthread> pool;
      for (int t = 0; t < 4; ++t) pool.emplace_back([&, t] { problem.run_thread(isa, output, t, 4); });
    }
    EXPECT_EQ(output, problem.run(isa, 1));
  }
}

TEST(Attention, a_row_is_the_same_alone_and_in_any_prefill) {
  constexpr std::uint32_t position = 130;
  for (const KvType type : {KvType::f16, KvType::q8_0}) {
    const Shape shape{.type = type};
    Problem alone(shape, {{position, 1}});
    for (const std::uint32_t before : {1U, 2U, 30U, 63U, 130U}) {
      Problem together(shape, {{position - before, before + 1}, {17, 3}});
      for (const Isa isa : supported_isas()) {
        alone.store(isa, 1);
        together.store(isa, 1);
        const auto expected = alone.run(isa, 1);
        const auto result = together.run(isa, 3);
        EXPECT_THAT(std::span(result).subspan(before * alone.query_width(), alone.query_width()),
                    ElementsAreArray(expected))
            << to_string(isa) << " after " << before;
      }
    }
  }
}

TEST(Attention, the_size_of_pages_changes_nothing) {
  for (const Isa isa : supported_isas()) {
    std::vector<float> first;
    for (const std::uint32_t page_tokens : {64U, 16U, 7U, 256U}) {
      Problem problem({.page_tokens = page_tokens}, {{140, 3}});
      problem.store(isa, 1);
      const auto result = problem.run(isa, 1);
      if (first.empty()) first = result;
      EXPECT_EQ(result, first) << to_string(isa) << " pages of " << page_tokens;
    }
  }
}

TEST(Attention, the_first_token_sees_its_own_value) {
  Problem problem({}, {{0, 1}});
  for (const Isa isa : supported_isas()) {
    problem.store(isa, 1);
    const auto value = problem.stored(0, 0, problem.kv().value_offset);
    const auto result = problem.run(isa, 1);
    for (std::size_t i = 0; i < result.size(); ++i) EXPECT_EQ(result[i], value[i / 128 * 64 + i % 64]) << i;
  }
}

TEST(Attention, positions_around_the_borders_of_pages_and_tiles_are_right) {
  for (const std::uint32_t position : {14U, 15U, 16U, 62U, 63U, 64U, 65U, 127U, 128U}) {
    Problem problem({}, {{position, 2}}, position);
    for (const Isa isa : supported_isas()) {
      problem.store(isa, 1);
      EXPECT_LT(problem.error_of(problem.run(isa, 2)), 3e-6) << to_string(isa) << " position " << position;
    }
  }
}

TEST(StoreRows, numbers_are_rounded_to_the_nearest_of_the_format) {
  for (const KvType type : {KvType::f16, KvType::q8_0}) {
    Problem problem({.type = type}, {{20, 30}});
    for (const Isa isa : supported_isas()) {
      problem.store(isa, 2);
      for (std::uint32_t position = 0; position < 50; ++position) {
        const auto stored = problem.stored(0, position, problem.kv().key_offset);
        for (std::size_t i = 0; i < stored.size(); ++i) {
          const double key = problem.keys(0)[position * problem.kv_width() + i];
          const double step = type == KvType::f16 ? std::abs(key) / 1024 : 4.5 / 127;
          EXPECT_NEAR(stored[i], key, step * 0.51 + 1e-7) << to_string(isa);
        }
      }
    }
  }
}

TEST(StoreRows, every_instruction_set_stores_the_same_bytes) {
  for (const KvType type : {KvType::f16, KvType::q8_0}) {
    Problem problem({.type = type}, {{20, 30}});
    problem.store(Isa::scalar, 1);
    const auto expected = problem.pool();
    for (const Isa isa : supported_isas()) {
      problem.store(isa, 1);
      EXPECT_EQ(problem.pool(), expected) << to_string(isa);
    }
  }
}

TEST(Half, conversions_agree_with_the_definition_for_every_number) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float number = half_to_float(half);
    if ((half & 0x7fff) > 0x7c00) {
      EXPECT_TRUE(std::isnan(number));
    } else if ((half & 0x7fff) == 0x7c00) {
      EXPECT_TRUE(std::isinf(number));
    } else {
      EXPECT_EQ(number, half_at(reinterpret_cast<const std::byte*>(&half), 0));
    }
    if (!std::isnan(number)) {
      EXPECT_EQ(float_to_half(number), half);
    }
  }
}

TEST(Half, numbers_between_two_halves_go_to_the_nearer_and_ties_to_the_even) {
  EXPECT_EQ(float_to_half(1 + 0x1p-11F), 0x3c00);
  EXPECT_EQ(float_to_half(1 + 0x1.8p-10F), 0x3c02);
  EXPECT_EQ(float_to_half(std::nextafter(1 + 0x1p-11F, 2.0F)), 0x3c01);
  EXPECT_EQ(float_to_half(0x1p-25F), 0);
  EXPECT_EQ(float_to_half(0x1.8p-25F), 1);
  EXPECT_EQ(float_to_half(65519), 0x7bff);
  EXPECT_EQ(float_to_half(65520), 0x7c00);
  EXPECT_EQ(float_to_half(-1e9F), 0xfc00);
}

}  // namespace
}  // namespace molly::engine
