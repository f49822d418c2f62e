#include "sizing/engine_fit.h"

#include <gtest/gtest.h>

namespace molly::sizing {
namespace {

gguf::ModelFile fitting_model() {
  gguf::ModelFile model;
  model.architecture = "llama";
  model.embedding_length = 256;
  model.heads = 4;
  model.tensors = {{.name = "output.weight", .type = static_cast<std::uint32_t>(gguf::TensorType::q6_k)}};
  return model;
}

TEST(EngineFit, takes_a_dense_model_of_every_known_architecture) {
  for (const char* architecture : {"llama", "mistral3", "qwen2", "qwen3"}) {
    auto model = fitting_model();
    model.architecture = architecture;
    EXPECT_EQ(unfit_for_engine(model), std::nullopt) << architecture;
  }
}

TEST(EngineFit, says_why_it_does_not_take_a_model) {
  struct Case {
    std::string_view reason;
    void (*change)(gguf::ModelFile&);
  };
  constexpr Case cases[] = {
      {"architecture is 'gemma3'", [](auto& model) { model.architecture = "gemma3"; }},
      {"several files", [](auto& model) { model.metadata["split.count"] = std::uint64_t{2}; }},
      {"mixture of experts", [](auto& model) { model.metadata["llama.expert_count"] = std::uint64_t{8}; }},
      {"sliding window", [](auto& model) { model.metadata["llama.attention.sliding_window"] = std::uint64_t{4096}; }},
      {"kind 'yarn'", [](auto& model) { model.metadata["llama.rope.scaling.type"] = std::string("yarn"); }},
      {"heads have 80 numbers", [](auto& model) { model.embedding_length = 320; }},
      {"heads have 0 numbers", [](auto& model) { model.heads = 0; }},
      {"tensor output.weight", [](auto& model) { model.tensors[0].type = 23; }},
      {"tensor output.weight", [](auto& model) { model.tensors[0].type = 4'000'000'000; }}};
  for (const Case& one : cases) {
    auto model = fitting_model();
    one.change(model);
    const auto reason = unfit_for_engine(model);
    ASSERT_TRUE(reason) << one.reason;
    EXPECT_TRUE(reason->contains(one.reason)) << *reason;
  }
}

}  // namespace
}  // namespace molly::sizing
