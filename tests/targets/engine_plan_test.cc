#include <gtest/gtest.h>

#include <algorithm>

#include "base/os/processors.h"
#include "targets/model_list.h"
#include "targets/supervisor_plan.h"

namespace molly::targets {
namespace {

const ModelEntry embedded{.name = "nano", .file = MOLLY_SOURCE_DIR "/models/nano.gguf", .projector = {}};
// Any program will do where it is only looked for.
const std::filesystem::path some_program = "/bin/sh";

TEST(EnginePlan, the_embedded_model_is_the_engines_unless_the_owner_says_otherwise) {
  const auto server = [](const ModelSettings& settings) {
    return plan_model(embedded, settings, sizing::this_device())->plan.server;
  };
  EXPECT_EQ(server({.engine = some_program}), ModelServer::molly_engine);
  EXPECT_EQ(server({.runtime = ModelRuntime::molly_engine, .engine = some_program}), ModelServer::molly_engine);
  EXPECT_EQ(server({.runtime = ModelRuntime::llama_server, .engine = some_program}), ModelServer::llama_server);
  EXPECT_EQ(server({.engine = "/nowhere/molly-engine"}), ModelServer::llama_server);
}

TEST(EnginePlan, an_engine_that_is_asked_for_and_cannot_is_an_error) {
  const auto missing = plan_model(embedded, {.runtime = ModelRuntime::molly_engine, .engine = "/nowhere/molly-engine"},
                                  sizing::this_device());
  ASSERT_FALSE(missing);
  EXPECT_TRUE(missing.error().message.contains("/nowhere/molly-engine")) << missing.error().message;
  auto seeing = embedded;
  seeing.projector = "eyes.gguf";
  const auto images =
      plan_model(seeing, {.runtime = ModelRuntime::molly_engine, .engine = some_program}, sizing::this_device());
  ASSERT_FALSE(images);
  EXPECT_TRUE(images.error().message.contains("images")) << images.error().message;
}

const SupervisorOptions programs{.server = "/usr/bin/llama-server", .engine = "/usr/bin/molly-engine", .threads = 2};

std::string argument(const std::vector<std::string>& arguments, std::string_view name) {
  const auto found = std::ranges::find(arguments, name);
  return found == arguments.end() ? "" : *std::next(found);
}

std::vector<std::string> arguments_for(const ModelSettings& settings, const sizing::Device& device) {
  const auto prepared = prepare_plan(plan_model(embedded, settings, device)->plan, programs);
  return child_arguments(prepared.value(), programs, {.socket = "/run/s.sock", .key = "/run/s.key"});
}

sizing::Device device_of(std::uint64_t available_bytes) {
  auto out = sizing::this_device();
  out.cores = 3;
  out.memory.available_bytes = available_bytes;
  return out;
}

TEST(EnginePlan, what_is_admitted_is_what_the_engine_is_told) {
  const auto device = device_of(4ULL << 30);
  const ModelSettings settings{.engine = some_program, .parallel = 3, .context = 128};
  const auto served = plan_model(embedded, settings, device);
  const auto prepared = prepare_plan(served->plan, programs);
  ASSERT_TRUE(prepared);
  const sizing::EnginePlan& plan = *prepared->plan.engine;
  EXPECT_EQ(prepared->memory_bytes, plan.memory_bytes());
  EXPECT_EQ(prepared->context_length, 128U);
  EXPECT_EQ(served->description.context_length, 128U);
  const auto arguments = arguments_for(settings, device);
  const auto at = [&](const char* name) { return argument(arguments, name); };
  EXPECT_EQ(arguments[0], "/usr/bin/molly-engine");
  EXPECT_EQ(at("--listen"), "unix:/run/s.sock");
  EXPECT_EQ(at("--parallel"), "3");
  EXPECT_EQ(at("--context"), "128");
  EXPECT_EQ(at("--threads"), "3");
  EXPECT_EQ(at("--kv-type"), "f16");
  EXPECT_EQ(at("--pool"), std::to_string(plan.pool_bytes()));
  EXPECT_EQ(at("--warm"), std::to_string(plan.warm_bytes));
}

TEST(EnginePlan, less_memory_makes_a_smaller_plan_and_too_little_an_error_that_says_how_much) {
  const ModelSettings settings{.engine = some_program};
  const auto memory = [&](std::uint64_t available) {
    return prepare_plan(plan_model(embedded, settings, device_of(available))->plan, programs);
  };
  const auto small = memory(200ULL << 20);
  const auto large = memory(4ULL << 30);
  ASSERT_TRUE(small && large);
  EXPECT_LT(small->memory_bytes, large->memory_bytes);
  const auto none = memory(40ULL << 20);
  ASSERT_FALSE(none);
  EXPECT_TRUE(none.error().message.contains("are missing")) << none.error().message;
}

TEST(EnginePlan, processors_are_handed_on_and_decide_the_number_of_threads) {
  ModelSettings settings{.engine = some_program, .cpus = "0,2-3"};
  auto arguments = arguments_for(settings, device_of(4ULL << 30));
  EXPECT_EQ(argument(arguments, "--cpus"), "0,2-3");
  EXPECT_EQ(argument(arguments, "--threads"), "3");
  settings.threads = 1;
  EXPECT_EQ(argument(arguments_for(settings, device_of(4ULL << 30)), "--threads"), "1");
  settings.runtime = ModelRuntime::llama_server;
  arguments = arguments_for(settings, device_of(4ULL << 30));
  EXPECT_EQ(argument(arguments, "--cpu-list"), "0,2-3");
  EXPECT_EQ(arguments[3], "/usr/bin/llama-server");
}

TEST(EnginePlan, a_list_of_processors_that_are_not_there_is_a_mistake_in_the_configuration) {
  const auto verdict = [](const std::string& list) {
    auto document = config::Document::parse("[models]\ncpus = \"" + list + "\"\n", "molly.toml");
    read_models(document.root());
    const auto finished = document.finish();
    return finished ? std::string() : finished.error().message;
  };
  EXPECT_EQ(verdict(base::processors_text(base::usable_processors())), "");
  EXPECT_TRUE(verdict("1000").contains("does not exist")) << verdict("1000");
  EXPECT_TRUE(verdict("first two").contains("write for example 0,2-3")) << verdict("first two");
}

}  // namespace
}  // namespace molly::targets
