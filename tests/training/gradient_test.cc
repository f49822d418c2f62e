#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tiny_decoder.h"

namespace molly::training {
namespace {

using test::tiny_batch;
using test::TinyDecoder;
using test::TinyShape;

constexpr BatchShape shape{.rows = 2, .row_tokens = 32};

// A loss of the hidden states (and of the first layer's, as a hint): a weighted sum, whose gradient is the weights.
struct LinearLoss {
  std::vector<float> weights;
  double value = 0;

  LinearLoss() {
    Random random(11);
    for (std::size_t i = 0; i < std::size_t{shape.tokens()} * 64; ++i) weights.push_back(random.normal());
  }
  TrainingGraph::Loss function() {
    return [this](const States& states) {
      value = std::inner_product(weights.begin(), weights.end(), states.hidden.begin(), 0.0);
      std::ranges::copy(weights, states.hidden_gradient.begin());
      for (std::size_t i = 0; i < states.hints.size(); ++i) {
        value += std::inner_product(weights.rbegin(), weights.rend(), states.hints[i].begin(), 0.0);
        std::ranges::reverse_copy(weights, states.hint_gradients[i].begin());
      }
    };
  }
};

class Gradients : public testing::Test {
 protected:
  std::unique_ptr<Device> device = *Device::open();

  // The derivative in the direction of the gradient is its length: the best of several steps, relative to it.
  double worst_error(TrainingGraph& graph, std::span<ggml_tensor* const> parameters, const Arena& gradients) {
    LinearLoss loss;
    const auto function = loss.function();
    const auto value_at = [&] {
      EXPECT_TRUE(graph.run(tiny_batch(shape), function));
      return loss.value;
    };
    gradients.clear();
    value_at();
    const std::vector<float> found(gradients.numbers().begin(), gradients.numbers().end());
    double worst = 0;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const std::span<float> gradient = numbers_of(gradients.tensors()[i]);
      const float* direction = found.data() + (gradient.data() - gradients.numbers().data());
      worst = std::max(worst, error_along(numbers_of(parameters[i]), {direction, gradient.size()}, value_at));
    }
    return worst;
  }

 private:
  template <class Value>
  double error_along(std::span<float> parameter, std::span<const float> gradient, const Value& value_at) {
    const double length = std::sqrt(std::inner_product(gradient.begin(), gradient.end(), gradient.begin(), 0.0));
    EXPECT_GT(length, 1e-6);
    const std::vector<float> kept(parameter.begin(), parameter.end());
    double best = 1;
    for (const double step : {0.1, 0.03, 0.01, 0.003}) {
      const auto moved = [&](double by) {
        for (std::size_t i = 0; i < kept.size(); ++i) {
          parameter[i] = static_cast<float>(kept[i] + by * gradient[i] / length);
        }
        return value_at();
      };
      const double slope = (moved(step) - moved(-step)) / (2 * step);
      best = std::min(best, std::abs(slope - length) / length);
    }
    std::ranges::copy(kept, parameter.begin());
    return best;
  }
};

TEST_F(Gradients, of_all_weights_agree_with_differences) {
  for (const TinyShape& kind : {TinyShape{}, TinyShape{.head_norms = true}, TinyShape{.biases = true}}) {
    const TinyDecoder tiny(*device, kind);
    for (ggml_tensor* tensor : tiny.weights.tensors()) ggml_set_param(tensor);
    const Arena gradients = *Arena::make(tiny.shapes(), device->buffer_type());
    const auto graph = *TrainingGraph::build(*device, tiny.decoder, {.shape = shape, .hinted_layers = {0}},
                                             tiny.weights.tensors(), gradients.tensors());
    EXPECT_LT(worst_error(*graph, tiny.weights.tensors(), gradients), 1e-3);
  }
}

class LoraGradients : public Gradients {
 protected:
  TinyDecoder tiny{*device};
  FactorSettings settings{.targets = {engine::Projection::attn_q, engine::Projection::attn_v,
                                      engine::Projection::attn_output, engine::Projection::ffn_down}};
  std::vector<TensorShape> shapes = lora_shapes(tiny.decoder, settings);
  Arena factors = *Arena::make(shapes, device->buffer_type());
  Decoder adapted = with_lora(tiny.decoder, settings, factors);

  LoraGradients() {
    Random random(5);
    for (float& number : factors.numbers()) number += 0.1F * random.normal();
  }
  std::unique_ptr<TrainingGraph> graph(Rewrite rewrite, const Arena& gradients) {
    return *TrainingGraph::build(*device, adapted, {.shape = shape, .rewrite = rewrite}, factors.tensors(),
                                 gradients.tensors());
  }
};

TEST_F(LoraGradients, agree_with_differences) {
  const Arena gradients = *Arena::make(shapes, device->buffer_type());
  EXPECT_LT(worst_error(*graph(Rewrite::products, gradients), factors.tensors(), gradients), 1e-3);
}

TEST_F(LoraGradients, rewritten_products_equal_those_of_ggml) {
  const Arena rewritten = *Arena::make(shapes, device->buffer_type());
  const Arena native = *Arena::make(shapes, device->buffer_type());
  LinearLoss loss;
  const auto with = graph(Rewrite::products, rewritten);
  const auto without = graph(Rewrite::none, native);
  ASSERT_TRUE(with->run(tiny_batch(shape), loss.function()));
  ASSERT_TRUE(without->run(tiny_batch(shape), loss.function()));
  EXPECT_LT(with->count(GGML_OP_OUT_PROD), without->count(GGML_OP_OUT_PROD));
  for (std::size_t i = 0; i < native.numbers().size(); ++i) {
    ASSERT_NEAR(rewritten.numbers()[i], native.numbers()[i], 1e-4 + 1e-4 * std::abs(native.numbers()[i])) << i;
  }
}

TEST_F(LoraGradients, of_two_batches_add_up) {
  const Arena gradients = *Arena::make(shapes, device->buffer_type());
  const auto built = graph(Rewrite::products, gradients);
  LinearLoss loss;
  ASSERT_TRUE(built->run(tiny_batch(shape), loss.function()));
  const std::vector<float> once(gradients.numbers().begin(), gradients.numbers().end());
  ASSERT_TRUE(built->run(tiny_batch(shape), loss.function()));
  for (std::size_t i = 0; i < once.size(); ++i) ASSERT_NEAR(gradients.numbers()[i], 2 * once[i], 1e-3) << i;
}

TEST_F(LoraGradients, segments_of_a_row_do_not_see_each_other) {
  const Arena gradients = *Arena::make(shapes, device->buffer_type());
  const auto built = graph(Rewrite::products, gradients);
  const auto second_segment = [&](const Batch& batch) {
    std::vector<float> out;
    EXPECT_TRUE(built->run(batch, [&](const States& states) {
      out.assign(states.hidden.begin() + 20 * 64, states.hidden.begin() + 32 * 64);
    }));
    return out;
  };
  Batch batch = tiny_batch(shape);
  const std::vector<float> before = second_segment(batch);
  for (std::size_t i = 0; i < 20; ++i) batch.tokens[i] = 1;
  EXPECT_EQ(second_segment(batch), before);
}

}  // namespace
}  // namespace molly::training
