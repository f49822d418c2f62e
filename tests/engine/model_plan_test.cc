// What the plan says a model will take, against what it takes.
#include <gtest/gtest.h>

#include "../temporary_folder.h"
#include "engine/adapters/image.h"
#include "engine/model/backend.h"
#include "engine/model/forward.h"
#include "engine/service/engine.h"
#include "random_model.h"
#include "sizing/engine_plan.h"
#include "sizing/model_shape.h"

namespace molly::engine {
namespace {

constexpr ggml_type types[] = {GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q4_K, GGML_TYPE_Q6_K};

RandomModel model_of(ggml_type type, bool tied) {
  return {.n_embd = 512,
          .n_head = 8,
          .n_head_kv = 4,
          .head_dim = 64,
          .n_ff = 1024,
          .n_vocab = 2048,
          .tied = tied,
          .type = type};
}

// Of the file's pages that are in use; an embedding that is used twice is there once.
std::uint64_t mapped_once(const Model& model) {
  const Weights& weights = model.weights();
  const ggml_tensor* output = weights.output.tensor;
  const bool shared = weights.output.packed == nullptr && output->data == weights.token_embd->data;
  return model.mapped_bytes() - (shared ? ggml_nbytes(output) : 0);
}

class ModelPlan : public ::testing::Test {
 protected:
  std::filesystem::path write(const RandomModel& model) {
    const auto file = folder_.path() / "model.gguf";
    write_random_model(file, model);
    return file;
  }

  TemporaryFolder folder_;
  std::unique_ptr<Backend> backend_ = Backend::open({.threads = 1}).value();
};

TEST_F(ModelPlan, weights_are_where_the_plan_says) {
  for (const ggml_type type : types) {
    for (const bool tied : {false, true}) {
      SCOPED_TRACE(std::string(ggml_type_name(type)) + (tied ? ", tied" : ""));
      const auto model = Model::load(write(model_of(type, tied)), *backend_).value();
      const auto planned = sizing::weight_bytes(model->file(), sizing::this_device());
      const auto slack = static_cast<double>(planned.total()) / 50;  // alignment
      EXPECT_NEAR(static_cast<double>(planned.copied), static_cast<double>(model->copied_bytes()), slack);
      EXPECT_NEAR(static_cast<double>(planned.mapped), static_cast<double>(mapped_once(*model)), slack);
    }
  }
}

TEST_F(ModelPlan, pages_and_adapters_have_the_planned_size) {
  const RandomModel random = model_of(GGML_TYPE_Q4_0, false);
  const auto model = Model::load(write(random), *backend_).value();
  const auto shape = sizing::read_shape(model->file()).value();
  const auto adapter_file = folder_.path() / "adapter.gguf";
  write_random_adapter(adapter_file, random, {.rank = 16});
  const LoraFile adapter = read_lora_file(adapter_file, model->base_shape()).value();
  constexpr std::pair<KvType, sizing::NumberType> kv_types[] = {{KvType::f16, sizing::NumberType::f16},
                                                                {KvType::q8_0, sizing::NumberType::q8_0}};
  for (const auto& [ours, planned] : kv_types) {
    for (const std::uint32_t tokens : {16U, 64U, 128U}) {
      const std::size_t page = page_bytes(model->config(), tokens, ours);
      EXPECT_EQ(sizing::page_bytes(shape, tokens, planned), page);
      const auto image = make_image(adapter, FactorType::f16, page);
      const auto pages = sizing::adapter_pages(shape, 16, sizing::NumberType::f16, page);
      EXPECT_EQ(pages, image ? image->pages : 0) << tokens << " tokens a page";
    }
  }
}

TEST_F(ModelPlan, activations_take_no_more_than_planned_and_not_much_less) {
  for (const RandomModel& random : {model_of(GGML_TYPE_Q4_0, false), RandomModel{.n_vocab = 32'000}}) {
    const auto model = Model::load(write(random), *backend_).value();
    const auto forward = Forward::create(*model, *backend_, {.pages = 4, .max_rows = EngineOptions().max_rows}).value();
    const auto planned = sizing::activation_bytes(sizing::read_shape(model->file()).value());
    EXPECT_LE(forward->compute_bytes(), planned);
    EXPECT_GE(forward->compute_bytes(), planned / 3);
  }
}

}  // namespace
}  // namespace molly::engine
