#include <ggml-backend.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <llama.h>
#include <sys/resource.h>

#include <csignal>
#include <limits>

#include "../engine/adapters_file_writer.h"
#include "../temporary_folder.h"
#include "chat_fixture.h"
#include "training/adapter/adapter_files.h"
#include "training/adapter/manifest.h"
#include "training/adapter/rotary_rows.h"
#include "training/data/order.h"
#include "training/plot.h"
#include "training/random.h"

namespace molly::training {
namespace {

using engine::Projection;
using testing::ElementsAre;
using testing::HasSubstr;

// Architecture llama: two query heads and one of keys, each of four rows.
engine::BaseShape permuted_base() {
  auto base = engine::small_base();
  base.permuted_heads = 2;
  base.permuted_heads_kv = 1;
  return base;
}

LoraFactor factor(std::uint32_t layer, Projection projection, std::uint32_t rank) {
  const auto shape = engine::small_base().projections[static_cast<std::size_t>(projection)];
  LoraFactor out{layer, projection, rank, shape.n_in, shape.n_out, {}, {}};
  Random random(std::uint64_t{layer} * 10 + static_cast<std::uint64_t>(projection));
  const auto fill = [&](std::vector<float>& to, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) to.push_back(static_cast<float>(random.fraction() - 0.5));
  };
  fill(out.a, std::size_t{rank} * shape.n_in);
  fill(out.b, std::size_t{rank} * shape.n_out);
  return out;
}

LoraWeights all_projections(float alpha = 6) {
  LoraWeights out{.name = "sums", .base_name = "some/base", .alpha = alpha};
  for (std::uint32_t layer = 0; layer < 2; ++layer) {
    for (std::size_t i = 0; i < engine::projection_count; ++i) out.factors.push_back(factor(layer, Projection(i), 3));
  }
  return out;
}

void expect_same(const LoraWeights& one, const LoraWeights& other) {
  EXPECT_EQ(one.alpha, other.alpha);
  ASSERT_EQ(one.factors.size(), other.factors.size());
  for (std::size_t i = 0; i < one.factors.size(); ++i) {
    EXPECT_EQ(one.factors[i].projection, other.factors[i].projection);
    EXPECT_EQ(one.factors[i].rank, other.factors[i].rank);
    EXPECT_EQ(one.factors[i].a, other.factors[i].a) << i;
    EXPECT_EQ(one.factors[i].b, other.factors[i].b) << i;
  }
}

TEST(TrainingRotaryRows, rows_of_the_two_halves_of_a_head_become_neighbours_and_go_back) {
  const std::vector<float> rows{0, 1, 2, 3, 10, 11, 12, 13};
  EXPECT_THAT(interleaved(rows, 1, 2), ElementsAre(0, 2, 1, 3, 10, 12, 11, 13));
  EXPECT_EQ(in_halves(interleaved(rows, 1, 2), 1, 2), rows);
}

TEST(TrainingAdapter, numbers_survive_from_gguf_to_peft_and_back_exactly) {
  const TemporaryFolder folder;
  for (const auto& base : {permuted_base(), engine::small_base("qwen2")}) {
    for (const float alpha : {6.0F, 32.0F, 0.3F}) {
      const auto weights = all_projections(alpha);
      const auto first = folder.path() / "first.gguf";
      ASSERT_TRUE(write_gguf_adapter(first, weights, base, FactorPrecision::f32));
      const auto read = read_lora_weights(first, base).value();
      expect_same(read, weights);
      EXPECT_EQ(read.base_name, "some/base");
      ASSERT_TRUE(write_peft_adapter(folder.path() / "peft", read, base, ""));
      const auto from_peft = read_lora_weights(folder.path() / "peft", base).value();
      EXPECT_EQ(from_peft.base_name, "some/base");
      const auto second = folder.path() / "second.gguf";
      ASSERT_TRUE(write_gguf_adapter(second, from_peft, base, FactorPrecision::f32));
      expect_same(read_lora_weights(second, base).value(), weights);
    }
  }
}

TEST(TrainingAdapter, numbers_survive_from_peft_to_gguf_and_back_exactly) {
  const TemporaryFolder folder;
  const auto base = permuted_base();
  const auto file = engine::safetensors(engine::small_peft_matrices());
  write_text(folder.path() / "adapter_model.safetensors", {reinterpret_cast<const char*>(file.data()), file.size()});
  write_text(folder.path() / "adapter_config.json", engine::small_peft_config);
  const auto read = read_lora_weights(folder.path(), base).value();
  // Row 1 of q's B in the file, 1.5 and 2, is the second half's first neighbour of row 0: place 2 in llama.cpp's order.
  EXPECT_THAT(std::vector(read.factors[0].b.begin() + 4, read.factors[0].b.begin() + 6), ElementsAre(1.5, 2));
  ASSERT_TRUE(write_gguf_adapter(folder.path() / "a.gguf", read, base, FactorPrecision::f32));
  const auto again = read_lora_weights(folder.path() / "a.gguf", base).value();
  ASSERT_TRUE(write_peft_adapter(folder.path() / "out", again, base, ""));
  // The same numbers in the same order; only the spelling of the header may differ.
  const std::string written = file_contents(folder.path() / "out/adapter_model.safetensors");
  const std::size_t numbers = (2 * 8 + 8 * 2 + 2 * 12 + 8 * 2) * sizeof(float);
  const std::string original(file.begin(), file.end());
  EXPECT_EQ(written.substr(written.size() - numbers), original.substr(original.size() - numbers));
}

TEST(TrainingAdapter, projections_of_different_ranks_keep_what_they_do) {
  const TemporaryFolder folder;
  const auto base = permuted_base();
  LoraWeights weights{.name = "mixed", .alpha = 4};
  weights.factors = {factor(0, Projection::attn_q, 2), factor(1, Projection::ffn_down, 4)};
  ASSERT_TRUE(write_peft_adapter(folder.path(), weights, base, "base"));
  EXPECT_THAT(file_contents(folder.path() / "adapter_config.json"), HasSubstr("model.layers.1.mlp.down_proj\":4"));
  expect_same(read_lora_weights(folder.path(), base).value(), weights);
}

TEST(TrainingAdapter, half_precision_is_close_and_refuses_what_it_cannot_hold) {
  const TemporaryFolder folder;
  const auto base = permuted_base();
  auto weights = all_projections();
  const auto path = folder.path() / "half.gguf";
  ASSERT_TRUE(write_gguf_adapter(path, weights, base, FactorPrecision::f16));
  const auto read = read_lora_weights(path, base).value();
  for (std::size_t i = 0; i < weights.factors[0].a.size(); ++i) {
    EXPECT_NEAR(read.factors[0].a[i], weights.factors[0].a[i], 3e-4);
  }
  weights.factors[0].a[0] = 70'000;
  EXPECT_THAT(write_gguf_adapter(path, weights, base, FactorPrecision::f16).error().message, HasSubstr("too large"));
  weights.factors[0].a[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(write_gguf_adapter(path, weights, base, FactorPrecision::f32).error().message, HasSubstr("not a number"));
  weights.factors[0].a.pop_back();
  EXPECT_THAT(write_gguf_adapter(path, weights, base, FactorPrecision::f32).error().message, HasSubstr("do not fit"));
}

TEST(TrainingAdapter, llama_cpp_loads_what_is_written) {
  const char* const model_file = MOLLY_SOURCE_DIR "/models/nano.gguf";
  const TemporaryFolder folder;
  const auto base = read_base_shape(model_file).value();
  LoraWeights weights{.name = "sums", .base_name = "nano", .alpha = 8};
  for (std::uint32_t layer = 0; layer < base.layers; ++layer) {
    for (std::size_t i = 0; i < engine::projection_count; ++i) {
      const auto [n_in, n_out] = base.projections[i];
      weights.factors.push_back({layer, static_cast<Projection>(i), 4, n_in, n_out,
                                 std::vector<float>(std::size_t{4} * n_in, 0.01F),
                                 std::vector<float>(std::size_t{4} * n_out, 0.02F)});
    }
  }
  ggml_backend_load_all();
  llama_model* model = llama_model_load_from_file(model_file, llama_model_default_params());
  ASSERT_NE(model, nullptr);
  for (const auto precision : {FactorPrecision::f32, FactorPrecision::f16}) {
    const std::string path = folder.path() / "adapter.gguf";
    ASSERT_TRUE(write_gguf_adapter(path, weights, base, precision));
    llama_adapter_lora* adapter = llama_adapter_lora_init(model, path.c_str());
    EXPECT_NE(adapter, nullptr);
    char alpha[32] = {};
    llama_adapter_meta_val_str(adapter, "adapter.lora.alpha", alpha, sizeof alpha);
    EXPECT_THAT(alpha, testing::StartsWith("8"));
  }
  llama_model_free(model);
}

// Files of this process may not grow beyond so many bytes, as if the disk were full.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
  }
  ~FileLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = SIG_DFL;
};

TEST(TrainingAdapter, a_full_disk_leaves_the_file_that_was_there_and_nothing_else) {
  const TemporaryFolder folder;
  const auto base = permuted_base();
  const auto path = folder.path() / "adapter.gguf";
  ASSERT_TRUE(write_gguf_adapter(path, all_projections(), base, FactorPrecision::f32));
  const std::string before = file_contents(path);
  {
    const FileLimit limit(512);
    const auto written = write_gguf_adapter(path, all_projections(8), base, FactorPrecision::f32);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, ErrorCode::io_failed);
  }
  EXPECT_EQ(file_contents(path), before);
  const auto files = std::filesystem::directory_iterator(folder.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

Manifest some_manifest() {
  return {.base = {"ab12cd34ef56ab12", "Q8_0", "llama", "nano"},
          .adapter_sha256 = "0123",
          .rank = 8,
          .alpha = 16,
          .targets = {"attn_q"},
          .data_digest = "feed",
          .data_label = "sql",
          .settings = R"({"seed":1})",
          .curves = {{{1, 2.5}, {2, 2.25}}, {{2, 2.75}}},
          .trainer = "molly-engine 0.1.0"};
}

TEST(TrainingManifest, is_read_as_written) {
  const TemporaryFolder folder;
  const auto adapter = folder.path() / "adapter.gguf";
  ASSERT_TRUE(write_manifest(adapter, some_manifest()));
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "adapter.manifest.json"));
  const auto read = read_manifest(adapter);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, some_manifest());
  EXPECT_THAT(parse_manifest(R"({"base":{"sha256":5}})").error().message, HasSubstr("base.sha256 must be a string"));
  EXPECT_THAT(parse_manifest("{}").error().message, HasSubstr("base is required"));
}

TEST(TrainingManifest, an_adapter_file_that_was_changed_is_refused) {
  const TemporaryFolder folder;
  const auto adapter = folder.path() / "adapter.gguf";
  write_text(adapter, "abc");
  auto manifest = some_manifest();
  manifest.adapter_sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  EXPECT_TRUE(check_adapter(manifest, adapter));
  write_text(adapter, "abd");
  EXPECT_EQ(check_adapter(manifest, adapter).error().code, ErrorCode::conflict);
}

TEST(TrainingManifest, an_adapter_for_another_base_is_refused) {
  const auto base = identify_base(MOLLY_SOURCE_DIR "/models/nano.gguf").value();
  EXPECT_EQ(base.sha256.size(), 64);
  auto manifest = some_manifest();
  const auto refused = check_base(manifest, base);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::conflict);
  EXPECT_THAT(refused.error().message,
              HasSubstr("the adapter is for another base: it was made for nano Q8_0 (ab12cd34ef56"));
  manifest.base = base;
  EXPECT_TRUE(check_base(manifest, base));
}

TEST(TrainingManifest, the_shape_of_a_base_comes_from_its_header) {
  const auto shape = read_base_shape(MOLLY_SOURCE_DIR "/models/nano.gguf").value();
  EXPECT_EQ(shape.architecture, "llama");
  EXPECT_GT(shape.permuted_heads, 0);
}

TEST(TrainingPlot, both_curves_stand_on_axes_with_round_numbers) {
  LossCurves curves;
  for (std::uint64_t step = 1; step <= 100; ++step) curves.train.push_back({step, 5.0 / static_cast<double>(step)});
  curves.held_out = {{50, 2}, {75, std::numeric_limits<double>::quiet_NaN()}, {100, 1}};
  const std::string svg = plot_loss(curves);
  for (const char* part :
       {"<svg ", ">100</text>", ">5</text>", ">0</text>", ">training<", ">held out<", ">step<", "</svg>"}) {
    EXPECT_THAT(svg, HasSubstr(part));
  }
  EXPECT_THAT(svg, testing::Not(HasSubstr("nan")));
  EXPECT_THAT(svg, HasSubstr("points=\"620.0,"));  // the last held-out point, alone behind a gap
  EXPECT_THAT(plot_loss({}), testing::Not(testing::AnyOf(HasSubstr("nan"), HasSubstr("inf"))));
}

}  // namespace
}  // namespace molly::training
