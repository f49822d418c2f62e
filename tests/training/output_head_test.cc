#include "training/loss/output_head.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "training/graph/arena.h"
#include "training/graph/device.h"
#include "training/random.h"

namespace molly::training {
namespace {

constexpr std::size_t width = 32;
constexpr std::size_t vocabulary = 70'000;  // several blocks of the weight, several chunks of rows
constexpr std::size_t tokens = 300;

class Head : public testing::Test {
 protected:
  std::unique_ptr<Device> device = *Device::open();
  std::vector<TensorShape> shape{{"output.weight", width, vocabulary}};
  Arena weight = *Arena::make(shape, device->buffer_type());
  Arena weight_gradient = *Arena::make(shape, device->buffer_type());
  std::vector<float> hidden = std::vector<float>(tokens * width);
  std::vector<std::uint32_t> rows;

  Head() {
    Random random(1);
    for (float& number : weight.numbers()) number = random.normal() / 6;
    for (float& number : hidden) number = random.normal();
    for (std::uint32_t row = 1; row < tokens; row += 2) rows.push_back(row);
  }
  static std::int32_t token_of(std::size_t index) { return static_cast<std::int32_t>(index * 461 % vocabulary); }
  double loss(std::span<float> hidden_gradient) {
    OutputHead head(weight.tensors()[0], weight_gradient.tensors()[0]);
    return head.backward(hidden, rows, hidden_gradient, [](std::size_t index, std::span<float> logits) {
      return cross_entropy(logits, token_of(index), 1);
    });
  }
  double loss_alone() {
    double sum = 0;
    OutputHead head(weight.tensors()[0]);
    head.forward(hidden, rows, [&](std::size_t index, std::span<const float> logits) {
      std::vector<float> copy(logits.begin(), logits.end());
      sum += cross_entropy(copy, token_of(index), 1);
    });
    return sum;
  }
  double slope_along(std::span<float> numbers, std::span<const float> direction) {
    constexpr double step = 0.01;
    const double length = std::sqrt(std::inner_product(direction.begin(), direction.end(), direction.begin(), 0.0));
    const std::vector<float> kept(numbers.begin(), numbers.end());
    const auto moved = [&](double by) {
      for (std::size_t i = 0; i < kept.size(); ++i) {
        numbers[i] = static_cast<float>(kept[i] + by * direction[i] / length);
      }
      return loss_alone();
    };
    const double slope = (moved(step) - moved(-step)) / (2 * step);
    std::ranges::copy(kept, numbers.begin());
    return slope / length;
  }
};

TEST_F(Head, gradients_agree_with_differences) {
  std::vector<float> gradient(hidden.size());
  EXPECT_NEAR(loss(gradient), loss_alone(), 1e-3);
  EXPECT_NEAR(slope_along(hidden, gradient), 1, 1e-3);
  const std::vector<float> of_weight(weight_gradient.numbers().begin(), weight_gradient.numbers().end());
  EXPECT_NEAR(slope_along(weight.numbers(), of_weight), 1, 1e-3);
}

TEST_F(Head, rows_that_do_not_count_have_no_gradient) {
  std::vector<float> gradient(hidden.size());
  loss(gradient);
  for (std::size_t row = 0; row < tokens; row += 2) {
    for (std::size_t i = 0; i < width; ++i) ASSERT_EQ(gradient[row * width + i], 0) << row;
  }
}

TEST_F(Head, memory_is_bounded_by_the_chunk) {
  const OutputHead head(weight.tensors()[0]);
  EXPECT_LT(head.bytes(), tokens / 2 * vocabulary * sizeof(float));
}

TEST(CrossEntropy, is_the_negative_logarithm_of_the_probability) {
  std::vector<float> logits{1, 2, 3};
  const double sum = std::exp(1) + std::exp(2) + std::exp(3);
  EXPECT_NEAR(cross_entropy(logits, 1, 2), -2 * std::log(std::exp(2) / sum), 1e-6);
  EXPECT_NEAR(logits[0], 2 * std::exp(1) / sum, 1e-6);
  EXPECT_NEAR(logits[1], 2 * std::exp(2) / sum - 2, 1e-6);
}

TEST(CrossEntropy, survives_logits_that_overflow_an_exponential) {
  std::vector<float> logits{1000, -1000};
  EXPECT_NEAR(cross_entropy(logits, 1, 1), 2000, 1e-3);
}

}  // namespace
}  // namespace molly::training
