#include "targets/engine_fit.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "targets/model_list.h"
#include "targets/supervisor_plan.h"

namespace molly::targets {
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

const ModelEntry embedded{.name = "nano", .file = MOLLY_SOURCE_DIR "/models/nano.gguf", .projector = {}};
// Any program will do where it is only looked for.
const std::filesystem::path some_program = "/bin/sh";

TEST(EngineFit, the_embedded_model_is_the_engines_unless_the_owner_says_otherwise) {
  const auto server = [](const ModelSettings& settings) { return plan_model(embedded, settings)->plan.server; };
  EXPECT_EQ(server({.engine = some_program}), ModelServer::molly_engine);
  EXPECT_EQ(server({.runtime = ModelRuntime::molly_engine, .engine = some_program}), ModelServer::molly_engine);
  EXPECT_EQ(server({.runtime = ModelRuntime::llama_server, .engine = some_program}), ModelServer::llama_server);
  EXPECT_EQ(server({.engine = "/nowhere/molly-engine"}), ModelServer::llama_server);
}

TEST(EngineFit, an_engine_that_is_asked_for_and_cannot_is_an_error) {
  const auto missing = plan_model(embedded, {.runtime = ModelRuntime::molly_engine, .engine = "/nowhere/molly-engine"});
  ASSERT_FALSE(missing);
  EXPECT_TRUE(missing.error().message.contains("/nowhere/molly-engine")) << missing.error().message;
  auto seeing = embedded;
  seeing.projector = "eyes.gguf";
  const auto images = plan_model(seeing, {.runtime = ModelRuntime::molly_engine, .engine = some_program});
  ASSERT_FALSE(images);
  EXPECT_TRUE(images.error().message.contains("images")) << images.error().message;
}

TEST(EngineFit, the_engines_pool_holds_every_slots_context_and_is_counted) {
  const SupervisorOptions options{.server = "/usr/bin/llama-server", .engine = "/usr/bin/molly-engine", .threads = 2};
  const ModelPlan plan{
      .name = "nano", .file = embedded.file, .server = ModelServer::molly_engine, .context_length = 128, .slots = 3};
  const auto prepared = prepare_plan(plan, options);
  ASSERT_TRUE(prepared);
  EXPECT_GT(prepared->memory_bytes, prepared->pool_bytes);
  const auto arguments = child_arguments(*prepared, options, {.socket = "/run/s.sock", .key = "/run/s.key"});
  const auto at = [&](const char* name) { return *std::next(std::ranges::find(arguments, name)); };
  EXPECT_EQ(arguments[0], "/usr/bin/molly-engine");
  EXPECT_EQ(at("--listen"), "unix:/run/s.sock");
  EXPECT_EQ(at("--parallel"), "3");
  EXPECT_EQ(at("--context"), "128");
  EXPECT_EQ(at("--threads"), "2");
}

}  // namespace
}  // namespace molly::targets
