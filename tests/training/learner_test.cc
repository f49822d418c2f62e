#include "training/learner.h"

#include <gtest/gtest.h>
#include <llama.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "engine/text/vocabulary.h"
#include "training/adapter/adapter_files.h"
#include "training/adapter/manifest.h"

namespace molly::training {
namespace {

const char* const nano = MOLLY_SOURCE_DIR "/models/nano.gguf";
constexpr std::uint32_t row_tokens = 96;

// One text as a row in which everything after the first token counts.
PackedRow row_of(const engine::Vocabulary& vocabulary, std::string_view text) {
  Example example;
  example.tokens = vocabulary.tokenize(text, engine::SpecialTokens::as_text, engine::Beginning::bare);
  example.tokens.resize(std::min<std::size_t>(example.tokens.size(), row_tokens));
  example.counts.assign(example.tokens.size(), 1);
  example.counts[0] = 0;
  return pack(std::span(&example, 1), row_tokens).value().front();
}

class Learning : public testing::Test {
 protected:
  std::unique_ptr<BaseModel> base = *BaseModel::open(nano);
  std::unique_ptr<engine::Vocabulary> vocabulary = *engine::Vocabulary::open(nano);
  std::vector<PackedRow> rows{
      row_of(*vocabulary, "The grey fox counts nine red hens at the mill and writes 9 into the ledger of the mill."),
      row_of(*vocabulary, "Every ticket begins with a hash and ends with its colour: #17 red, #18 green, #19 blue."),
      row_of(*vocabulary,
             "Rain falls on the long road; bread is sold by the loaf, cheese by the wheel and salt by sack.")};
  std::vector<const PackedRow*> all{rows.data(), &rows[1], &rows[2]};

  static LearnerOptions options(std::uint32_t workers) {
    LearnerOptions out{.row_tokens = row_tokens, .workers = workers};
    out.factors.targets = {engine::Projection::attn_q,      engine::Projection::attn_k,   engine::Projection::attn_v,
                           engine::Projection::attn_output, engine::Projection::ffn_gate, engine::Projection::ffn_up,
                           engine::Projection::ffn_down};
    return out;
  }
  std::unique_ptr<Learner> learner(std::uint32_t workers = 1) { return *Learner::make(*base, options(workers)); }
  void learn(Learner& learner, int steps) {
    for (int i = 0; i < steps; ++i) ASSERT_TRUE(learner.step(all, 5e-3));
  }
  static std::vector<float> numbers(const Learner& learner) {
    return {learner.factors().numbers().begin(), learner.factors().numbers().end()};
  }
};

TEST_F(Learning, steps_lower_the_loss) {
  const auto one = learner();
  const double before = one->loss(all).value();
  learn(*one, 15);
  EXPECT_LT(one->loss(all).value(), before - 1);
}

TEST_F(Learning, the_same_steps_give_the_same_factors) {
  for (const std::uint32_t workers : {1U, 2U}) {
    const auto one = learner(workers);
    const auto other = learner(workers);
    learn(*one, 3);
    learn(*other, 3);
    EXPECT_EQ(numbers(*one), numbers(*other)) << workers;
  }
}

TEST_F(Learning, workers_only_share_the_work) {
  const auto alone = learner(1);
  const auto three = learner(3);
  learn(*alone, 2);
  learn(*three, 2);
  EXPECT_NEAR(alone->loss(all).value(), three->loss(all).value(), 1e-4);
}

TEST_F(Learning, rows_without_a_counted_token_are_refused) {
  const auto one = learner();
  PackedRow prompt = rows.front();
  std::ranges::fill(prompt.counts, std::uint8_t{0});
  const std::vector<const PackedRow*> only{&prompt};
  const std::vector<float> before = numbers(*one);
  EXPECT_FALSE(one->step(only, 1e-3));
  EXPECT_EQ(numbers(*one), before);
}

LoraWeights weights_of(const Learner& learner, const engine::BaseShape& shape, const FactorSettings& settings) {
  LoraWeights out{.name = "test", .base_name = "", .alpha = settings.alpha, .factors = {}};
  auto next = learner.factors().tensors().begin();
  for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
    for (const engine::Projection target : settings.targets) {
      const auto a = numbers_of(*next++);
      const auto b = numbers_of(*next++);
      const engine::ProjectionShape& size = shape.projections[static_cast<std::size_t>(target)];
      out.factors.push_back({.layer = layer,
                             .projection = target,
                             .rank = settings.rank,
                             .n_in = size.n_in,
                             .n_out = size.n_out,
                             .a = {a.begin(), a.end()},
                             .b = {b.begin(), b.end()}});
    }
  }
  return out;
}

// Mean negative log-likelihood of the row's targets by llama.cpp.
double llama_loss(const std::filesystem::path& adapter_file, const PackedRow& row) {
  llama_model* model = llama_model_load_from_file(nano, llama_model_default_params());
  llama_context_params wishes = llama_context_default_params();
  wishes.n_ctx = wishes.n_batch = wishes.n_ubatch = 256;
  wishes.n_threads = wishes.n_threads_batch = 1;
  wishes.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  llama_context* context = llama_init_from_model(model, wishes);
  llama_adapter_lora* adapter = llama_adapter_lora_init(model, adapter_file.c_str());
  float scale = 1;
  EXPECT_NE(adapter, nullptr);
  llama_set_adapters_lora(context, &adapter, 1, &scale);
  const auto length = static_cast<std::int32_t>(row.parts.front().length);
  llama_batch batch = llama_batch_init(length, 0, 1);
  batch.n_tokens = length;
  for (std::int32_t i = 0; i < length; ++i) {
    batch.token[i] = row.tokens[static_cast<std::size_t>(i)];
    batch.pos[i] = i;
    batch.n_seq_id[i] = 1;
    batch.seq_id[i][0] = 0;
    batch.logits[i] = 1;
  }
  EXPECT_EQ(llama_decode(context, batch), 0);
  const auto vocabulary = static_cast<std::size_t>(llama_vocab_n_tokens(llama_model_get_vocab(model)));
  double sum = 0;
  for (std::int32_t i = 0; i + 1 < length; ++i) {
    const std::span<const float> logits(llama_get_logits_ith(context, i), vocabulary);
    double total = 0;
    for (const float logit : logits) total += std::exp(static_cast<double>(logit));
    sum += std::log(total) - logits[static_cast<std::size_t>(row.targets[static_cast<std::size_t>(i)])];
  }
  llama_batch_free(batch);
  llama_free(context);
  llama_model_free(model);
  return sum / (length - 1);
}

TEST_F(Learning, llama_cpp_has_the_same_loss_on_the_saved_adapter) {
  const auto one = learner();
  learn(*one, 15);
  const engine::BaseShape shape = read_base_shape(nano).value();
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "learner_test_adapter.gguf";
  ASSERT_TRUE(write_gguf_adapter(file, weights_of(*one, shape, options(1).factors), shape, FactorPrecision::f32));
  for (const PackedRow* row : all) {
    EXPECT_NEAR(llama_loss(file, *row), one->loss(std::span(&row, 1)).value(), 5e-3);
  }
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace molly::training
