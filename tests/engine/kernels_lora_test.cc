#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <cmath>
#include <numeric>
#include <thread>

#include "engine/kernels/lora.h"
#include "kernels_fixture.h"

namespace molly::engine {
namespace {

using testing::Each;
using testing::ElementsAreArray;

// A fused linear with random adapters, a batch over it, and its result in double precision.
class Problem {
 public:
  struct Shape {
    std::uint32_t n_in = 64;
    std::vector<std::uint32_t> columns = {64};
    std::vector<std::vector<std::uint32_t>> ranks = {{8}};  // [adapter][segment]
    FactorType type = FactorType::f16;
    std::size_t padding = 0;  // floats between rows of x and of y
  };

  Problem(const Shape& shape, std::uint32_t seed) : shape_(shape), random_(seed) {
    for (const std::uint32_t columns : shape.columns) {
      segments_.push_back({columns_, columns});
      columns_ += columns;
    }
    for (const auto& ranks : shape.ranks) {
      for (std::size_t segment = 0; segment < ranks.size(); ++segment) {
        add_factors(ranks[segment], shape.columns[segment]);
      }
      rank_sums_.push_back(std::accumulate(ranks.begin(), ranks.end(), 0U));
    }
    for (std::size_t i = 0; i < pointers_.size(); i += 2) {
      factors_.push_back({pointers_[i], pointers_[i + 1], shape.type, 0.25F + random_.normal() * 0.1F});
    }
  }

  void add_rows(std::uint32_t rows, std::uint32_t adapter, float weight = 1) {
    add_rows_at(batch_rows_, rows, adapter, weight);
    batch_rows_ += rows;
  }
  void add_rows_at(std::uint32_t first, std::uint32_t rows, std::uint32_t adapter, float weight) {
    rows_.push_back({.first_row = first, .rows = rows, .adapter = adapter, .weight = weight});
  }
  void add_bare_row() { ++batch_rows_; }

  // A row's numbers depend on its place only.
  void fill() {
    for (std::uint32_t row = 0; row < batch_rows_; ++row) {
      Random numbers(row + 1);
      x_.append_range(numbers.normals(x_stride()));
      y_.append_range(numbers.normals(y_stride()));
    }
    scratch_ = place_hidden(rows_, rank_sums_);
  }

  LoraLinear linear() const { return {shape_.n_in, segments_, factors_, rows_}; }

  std::vector<float> run(Isa isa, int threads) const {
    std::vector<float> hidden(scratch_, std::nanf(""));
    std::vector<float> y = y_;
    for (int t = 0; t < threads; ++t) shrink(isa, hidden, t, threads);
    for (int t = 0; t < threads; ++t) expand(isa, hidden, y, t, threads);
    return y;
  }

  std::vector<float> run_on_threads(Isa isa, int threads) const {
    std::vector<float> hidden(scratch_, std::nanf(""));
    std::vector<float> y = y_;
    std::barrier all(threads);
    std::vector<std::jthread> pool;
    for (int t = 0; t < threads; ++t) {
      pool.emplace_back([&, t] {
        shrink(isa, hidden, t, threads);
        all.arrive_and_wait();
        expand(isa, hidden, y, t, threads);
      });
    }
    pool.clear();
    return y;
  }

  // |result - reference| relative to the sizes of the products that were added up.
  double error_of(const std::vector<float>& result) const {
    std::vector<double> expected(y_.begin(), y_.end());
    std::vector<double> sizes(y_.size(), 1);
    for (const LoraRows& group : rows_) {
      for (std::uint32_t row = group.first_row; row < group.first_row + group.rows; ++row) {
        add_adapter(group, row, expected, sizes);
      }
    }
    double worst = 0;
    for (std::size_t i = 0; i < y_.size(); ++i) worst = std::max(worst, std::abs(result[i] - expected[i]) / sizes[i]);
    return worst;
  }

  std::span<const float> row(const std::vector<float>& y, std::uint32_t index) const {
    return std::span(y).subspan(index * y_stride(), columns_);
  }
  std::vector<float> paddings(const std::vector<float>& y) const {
    std::vector<float> numbers;
    for (std::size_t i = 0; i < y.size(); ++i) {
      if (i % y_stride() >= columns_) numbers.push_back(y[i] - y_[i]);
    }
    return numbers;
  }
  const std::vector<float>& y() const { return y_; }
  std::uint32_t batch_rows() const { return batch_rows_; }

 private:
  void add_factors(std::uint32_t rank, std::uint32_t columns) {
    for (const std::uint32_t numbers : {shape_.n_in, columns}) {
      std::vector<const std::byte*> rows;
      for (std::uint32_t i = 0; i < rank; ++i) rows.push_back(add_row(numbers));
      pointers_.push_back(std::move(rows));
    }
  }

  // Exactly as large as the row, so that a sanitizer sees what reads past it.
  const std::byte* add_row(std::uint32_t numbers) {
    auto& row = storage_.emplace_back(row_bytes(shape_.type, numbers));
    if (shape_.type == FactorType::f16) {
      for (std::uint32_t i = 0; i < numbers; ++i) put_half(&row[i * 2], random_.normal() * 0.3F);
    } else {
      for (std::uint32_t i = 0; i < row.size(); ++i) row[i] = static_cast<std::byte>(random_.whole(0, 255));
      for (std::uint32_t i = 0; i < numbers; i += 32) put_half(&row[i / 32 * 34], 0.004F + random_.normal() * 0.001F);
    }
    return row.data();
  }

  static void put_half(std::byte* to, float number) {
    const std::uint16_t half = float_to_half(number);
    std::memcpy(to, &half, sizeof half);
  }

  double number_at(const std::byte* row, std::size_t index) const {
    return shape_.type == FactorType::f16 ? half_at(row, index) : q8_at(row, index);
  }

  void add_adapter(const LoraRows& group, std::uint32_t row, std::vector<double>& sums,
                   std::vector<double>& sizes) const {
    for (std::size_t segment = 0; segment < segments_.size(); ++segment) {
      const LoraFactors& factors = factors_[group.adapter * segments_.size() + segment];
      for (std::uint32_t rank = 0; rank < factors.rank(); ++rank) {
        double hidden = 0;
        double size = 0;
        for (std::uint32_t i = 0; i < shape_.n_in; ++i) {
          const double product = number_at(factors.a[rank], i) * x_[row * x_stride() + i];
          hidden += product;
          size += std::abs(product);
        }
        const double scale = static_cast<double>(group.weight) * factors.scale;
        for (std::uint32_t column = 0; column < segments_[segment].columns; ++column) {
          const double b = scale * number_at(factors.b[rank], column);
          const std::size_t place = row * y_stride() + segments_[segment].first_column + column;
          sums[place] += hidden * b;
          sizes[place] += std::abs(size * b);
        }
      }
    }
  }

  void shrink(Isa isa, std::span<float> hidden, int thread, int threads) const {
    lora_shrink(isa, linear(), {x_.data(), x_stride() * sizeof(float)}, hidden, thread, threads);
  }
  void expand(Isa isa, std::span<const float> hidden, std::span<float> y, int thread, int threads) const {
    lora_expand(isa, linear(), hidden, {y.data(), y_stride() * sizeof(float)}, thread, threads);
  }
  std::size_t x_stride() const { return shape_.n_in + shape_.padding; }
  std::size_t y_stride() const { return columns_ + shape_.padding; }

  Shape shape_;
  Random random_;
  std::uint32_t columns_ = 0;
  std::uint32_t batch_rows_ = 0;
  std::vector<LoraSegment> segments_;
  std::vector<std::vector<std::byte>> storage_;
  std::vector<std::vector<const std::byte*>> pointers_;
  std::vector<LoraFactors> factors_;
  std::vector<std::uint32_t> rank_sums_;
  std::vector<LoraRows> rows_;
  std::vector<float> x_;
  std::vector<float> y_;
  std::size_t scratch_ = 0;
};

Problem random_problem(std::uint32_t seed) {
  Random random(seed);
  Problem::Shape shape;
  shape.type = random.whole(0, 1) == 0 ? FactorType::f16 : FactorType::q8_0;
  const auto size = [&] {
    const std::uint32_t blocks = random.whole(1, 9) * 32;
    return shape.type == FactorType::f16 && random.whole(0, 1) == 1 ? random.whole(1, 300) : blocks;
  };
  shape.n_in = size();
  shape.columns.resize(random.whole(1, 3));
  for (auto& columns : shape.columns) columns = size();
  shape.ranks.assign(random.whole(1, 4), {});
  for (auto& ranks : shape.ranks) {
    for (std::size_t i = 0; i < shape.columns.size(); ++i) ranks.push_back(random.whole(0, 21));
  }
  shape.padding = random.whole(0, 20);

  Problem problem(shape, seed + 1000);
  for (std::uint32_t group = 0; group < random.whole(1, 5); ++group) {
    const auto adapter = [&] { return random.whole(0, static_cast<std::uint32_t>(shape.ranks.size()) - 1); };
    const std::uint32_t first = problem.batch_rows();
    const std::uint32_t rows = random.whole(0, 3) == 0 ? random.whole(5, 70) : random.whole(1, 4);
    problem.add_rows(rows, adapter(), random.normal());
    if (random.whole(0, 2) == 0) problem.add_rows_at(first, rows, adapter(), random.normal());
    if (random.whole(0, 2) == 0) problem.add_bare_row();
  }
  problem.fill();
  return problem;
}

TEST(Lora, random_batches_agree_with_double_precision_whatever_the_threads) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const Problem problem = random_problem(seed);
    for (const Isa isa : supported_isas()) {
      const auto result = problem.run(isa, 1);
      EXPECT_LT(problem.error_of(result), 1e-6) << to_string(isa) << " seed " << seed;
      EXPECT_THAT(problem.paddings(result), Each(0.0F));
      for (const int threads : {2, 3, 16}) {
        EXPECT_EQ(problem.run(isa, threads), result) << to_string(isa) << " seed " << seed << " threads " << threads;
      }
    }
  }
}

TEST(Lora, threads_need_to_meet_only_between_shrink_and_expand) {
  for (std::uint32_t seed = 100; seed < 110; ++seed) {
    const Problem problem = random_problem(seed);
    for (const Isa isa : supported_isas()) EXPECT_EQ(problem.run_on_threads(isa, 4), problem.run(isa, 1));
  }
}

TEST(Lora, a_row_is_the_same_alone_and_in_any_company) {
  for (const FactorType type : {FactorType::f16, FactorType::q8_0}) {
    const Problem::Shape shape{.n_in = 96, .columns = {64, 32}, .ranks = {{13, 5}, {16, 0}}, .type = type};
    Problem alone(shape, 3);
    alone.add_rows(1, 0);
    alone.fill();
    for (const std::uint32_t rows : {2U, 3U, 4U, 7U, 33U}) {
      Problem together(shape, 3);
      together.add_rows(rows, 0);
      together.add_rows(2, 1);
      together.fill();
      for (const Isa isa : supported_isas()) {
        EXPECT_THAT(together.row(together.run(isa, 3), 0), ElementsAreArray(alone.row(alone.run(isa, 1), 0)))
            << to_string(isa) << " with " << rows << " rows";
      }
    }
  }
}

TEST(Lora, a_row_that_mixes_adapters_gets_the_sum_of_their_parts) {
  Problem problem({.n_in = 64, .columns = {32}, .ranks = {{4}, {9}}}, 5);
  problem.add_rows_at(0, 1, 0, 0.75F);
  problem.add_rows(1, 1, 0.25F);
  problem.fill();
  for (const Isa isa : supported_isas()) EXPECT_LT(problem.error_of(problem.run(isa, 2)), 1e-6) << to_string(isa);
}

TEST(Lora, rows_without_an_adapter_stay_as_they_are) {
  Problem problem({.n_in = 64, .columns = {32}, .ranks = {{8}}}, 6);
  problem.add_bare_row();
  problem.add_rows(1, 0);
  problem.add_bare_row();
  problem.fill();
  for (const Isa isa : supported_isas()) {
    const auto result = problem.run(isa, 2);
    for (const std::uint32_t bare : {0U, 2U}) {
      EXPECT_THAT(problem.row(result, bare), ElementsAreArray(problem.row(problem.y(), bare)));
    }
  }
}

TEST(Lora, a_batch_without_adapters_is_no_work) {
  Problem problem({.n_in = 64, .columns = {32}, .ranks = {{8}}}, 7);
  problem.add_bare_row();
  problem.fill();
  for (const Isa isa : supported_isas()) EXPECT_EQ(problem.run(isa, 2), problem.y());
}

TEST(Lora, places_of_hidden_numbers_do_not_overlap) {
  std::vector<LoraRows> rows = {{.rows = 3, .adapter = 0}, {.rows = 1, .adapter = 1}, {.rows = 5, .adapter = 1}};
  const std::array<std::uint32_t, 2> rank_sums = {7, 48};
  const std::size_t floats = place_hidden(rows, rank_sums);
  EXPECT_EQ(rows[0].hidden, 0U);
  EXPECT_GE(rows[1].hidden, 3U * 7);
  EXPECT_GE(rows[2].hidden, rows[1].hidden + 48);
  EXPECT_GE(floats, rows[2].hidden + std::size_t{5} * 48);
}

TEST(Lora, rows_take_two_bytes_a_number_or_34_a_block) {
  EXPECT_EQ(row_bytes(FactorType::f16, 33), 66U);
  EXPECT_EQ(row_bytes(FactorType::q8_0, 64), 68U);
}

}  // namespace
}  // namespace molly::engine
