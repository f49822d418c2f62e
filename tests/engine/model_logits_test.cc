// The forward pass against libllama with the same weights, tokens and adapters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <optional>
#include <random>

#include "../temporary_folder.h"
#include "engine/adapters/image.h"
#include "engine/adapters/lora_file.h"
#include "engine/model/backend.h"
#include "engine/model/forward.h"
#include "engine/model/model.h"
#include "numerics.h"
#include "random_model.h"

namespace molly::engine {
namespace {

std::vector<Token> random_tokens(std::size_t count, std::uint32_t vocabulary, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Token> tokens{1};
  while (tokens.size() < count) tokens.push_back(static_cast<Token>(260 + random() % (vocabulary - 260)));
  return tokens;
}

struct BenchOptions {
  std::uint32_t threads = 1;
  OperationSet operations = OperationSet::own_kernels;
  KvType kv_type = KvType::f16;
};

// A model with a pool, and adapters that lie in its last pages.
class Bench {
 public:
  explicit Bench(const std::filesystem::path& file, const BenchOptions& options = {}) {
    backend_ = Backend::open({.threads = options.threads,
                              .products = options.operations == OperationSet::stock ? Products::ggml : Products::own})
                   .value();
    auto loaded = Model::load(file, *backend_);
    if (!loaded) throw std::runtime_error(loaded.error().message);
    model_ = std::move(*loaded);
    forward_ = Forward::create(*model_, *backend_,
                               {.pages = pages,
                                .page_tokens = 16,
                                .kv_type = options.kv_type,
                                .max_rows = 128,
                                .operations = options.operations})
                   .value();
  }

  const ResidentAdapter* add_adapter(const std::filesystem::path& file, FactorType type) {
    add_adapter_at(adapters_.emplace_back(), file, type);
    return &*adapters_.back();
  }

  void add_adapter_at(std::optional<ResidentAdapter>& place, const std::filesystem::path& file,
                      FactorType type = FactorType::f16) {
    const LoraFile lora = read_lora_file(file, model_->base_shape()).value();
    const AdapterImage image = make_image(lora, type, forward_->bytes_of_page()).value();
    std::vector<std::byte*> addresses;
    for (std::uint32_t page = 0; page < image.pages; ++page) {
      addresses.push_back(forward_->page_address(next_adapter_page_--));
      std::memcpy(addresses.back(), image.bytes.data() + page * image.page_bytes, image.page_bytes);
    }
    place.emplace(image, model_->config().n_layer, addresses);
  }

  struct Text {
    std::vector<Token> tokens;
    std::vector<AdapterShare> adapters;
  };

  // Logits of every position of every text, all texts side by side: first `chunk` tokens at a time, the rest one by
  // one.
  std::vector<std::vector<float>> logits(std::span<const Text> texts, std::size_t chunk, std::size_t together) {
    const auto page_tokens = forward_->page_tokens();
    std::vector<std::vector<PageId>> tables(texts.size());
    PageId next = 0;
    // Pages of the texts lie between each other.
    for (std::size_t page = 0; page * page_tokens < texts[0].tokens.size(); ++page) {
      for (auto& table : tables) table.push_back(next++);
    }
    std::vector<std::vector<float>> out(texts.size());
    for (std::size_t begin = 0; begin < texts[0].tokens.size();) {
      const std::size_t count = begin < together ? std::min(chunk, together - begin) : 1;
      std::vector<StepSequence> sequences;
      sequences.reserve(texts.size());
      for (std::size_t i = 0; i < texts.size(); ++i) {
        sequences.push_back({.tokens = std::span(texts[i].tokens).subspan(begin, count),
                             .first_position = static_cast<std::uint32_t>(begin),
                             .pages = tables[i],
                             .adapters = texts[i].adapters,
                             .wanted = Wanted::all});
      }
      EXPECT_TRUE(forward_->run(sequences).has_value());
      for (std::size_t i = 0; i < texts.size(); ++i) {
        for (std::size_t token = 0; token < count; ++token) {
          const auto row = forward_->logits(static_cast<std::uint32_t>(i * count + token));
          out[i].insert(out[i].end(), row.begin(), row.end());
        }
      }
      begin += count;
    }
    return out;
  }

  const Model& model() const { return *model_; }

 private:
  static constexpr std::uint32_t pages = 256;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Forward> forward_;
  std::list<std::optional<ResidentAdapter>> adapters_;
  PageId next_adapter_page_ = pages - 1;
};

struct Case {
  std::string architecture;
  ggml_type type;
  bool tied = false;
};

class Logits : public testing::TestWithParam<Case> {
 protected:
  RandomModel shape() const {
    const Case& wanted = GetParam();
    // Super-blocks of K-quants are 256 numbers.
    return {.architecture = wanted.architecture,
            .n_embd = 256,
            .n_head = 4,
            .n_head_kv = 2,
            .head_dim = 64,
            .n_ff = 512,
            .tied = wanted.tied,
            .type = wanted.type};
  }
  TemporaryFolder folder_;
};

TEST_P(Logits, agree_with_libllama_as_well_as_libllama_with_itself) {
  const auto file = folder_.path() / "base.gguf";
  write_random_model(file, shape());
  std::vector<std::filesystem::path> adapters;
  for (std::uint64_t i = 0; i < 3; ++i) {
    adapters.push_back(folder_.path() / ("adapter" + std::to_string(i) + ".gguf"));
    write_random_adapter(adapters.back(), shape(),
                         {.rank = static_cast<std::int64_t>(8 << i), .alpha = 16, .seed = i + 1});
  }
  const LlamaReference reference(file);
  std::vector<std::vector<Token>> tokens(4);
  std::vector<std::vector<float>> expected;
  double spread = 0;
  for (unsigned i = 0; i < tokens.size(); ++i) {
    tokens[i] = random_tokens(40, 1024, i + 7);
    const auto adapter = i < 3 ? adapters[i] : std::filesystem::path();
    expected.push_back(reference.logits(tokens[i], adapter));
    const auto other = reference.logits(tokens[i], adapter, {.flash_attention = false, .token_by_token = true});
    spread = std::max(spread, nmse(other, expected.back()));
  }
  const auto adapted = nmse(expected[0], reference.logits(tokens[0]));
  EXPECT_GT(adapted, 0.01) << "the adapter changes the output";
  const auto expect_within = [&](OperationSet operations, double tolerance) {
    Bench bench(file, {.operations = operations});
    std::vector<Bench::Text> texts(tokens.size());
    for (unsigned i = 0; i < texts.size(); ++i) {
      texts[i].tokens = tokens[i];
      if (i < 3) texts[i].adapters = {{bench.add_adapter(adapters[i], FactorType::f16), 1}};
    }
    const auto got = bench.logits(texts, 10, 30);
    for (unsigned i = 0; i < texts.size(); ++i) {
      const double error = nmse(got[i], expected[i]);
      EXPECT_LE(error, std::max(tolerance, 1e-7)) << "text " << i << ", spread " << spread;
    }
  };
  {
    SCOPED_TRACE("own kernels");
    expect_within(OperationSet::own_kernels, 1.5 * spread);
  }
  {
    SCOPED_TRACE("ggml's operations");
    expect_within(OperationSet::stock, spread);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Logits,
                         testing::Values(Case{"llama", GGML_TYPE_F16}, Case{"llama", GGML_TYPE_BF16},
                                         Case{"llama", GGML_TYPE_Q8_0}, Case{"llama", GGML_TYPE_Q4_0},
                                         Case{"llama", GGML_TYPE_Q4_0, true}, Case{"llama", GGML_TYPE_Q4_K},
                                         Case{"llama", GGML_TYPE_Q5_K}, Case{"llama", GGML_TYPE_Q6_K},
                                         Case{"qwen2", GGML_TYPE_Q8_0}, Case{"qwen3", GGML_TYPE_Q8_0}),
                         [](const auto& instance) {
                           std::string type = ggml_type_name(instance.param.type);
                           std::ranges::replace(type, '_', 'x');
                           return instance.param.architecture + type + (instance.param.tied ? "tied" : "");
                         });

TEST(Forward, mixes_adapters_and_quantized_keys_as_ggmls_operations_do) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "base.gguf";
  const RandomModel shape{.type = GGML_TYPE_F16};
  write_random_model(file, shape);
  write_random_adapter(folder.path() / "1.gguf", shape, {.rank = 4, .seed = 1});
  write_random_adapter(folder.path() / "2.gguf", shape, {.rank = 8, .seed = 2});
  for (const KvType kv_type : {KvType::f16, KvType::q8_0}) {
    std::vector<std::vector<std::vector<float>>> got;
    for (const OperationSet operations : {OperationSet::own_kernels, OperationSet::stock}) {
      Bench bench(file, {.operations = operations, .kv_type = kv_type});
      const ResidentAdapter* one = bench.add_adapter(folder.path() / "1.gguf", FactorType::q8_0);
      const ResidentAdapter* two = bench.add_adapter(folder.path() / "2.gguf", FactorType::f16);
      std::vector<Bench::Text> texts(3);
      for (unsigned i = 0; i < texts.size(); ++i) texts[i].tokens = random_tokens(40, 1024, i);
      texts[0].adapters = {{one, 0.25F}, {two, 0.75F}};
      texts[2].adapters = {{two, -0.5F}};
      got.push_back(bench.logits(texts, 10, 30));
    }
    for (std::size_t i = 0; i < got[0].size(); ++i) EXPECT_LT(nmse(got[0][i], got[1][i]), 1e-5) << "text " << i;
  }
}

TEST(Forward, gives_a_row_the_same_whatever_shares_its_batch) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "base.gguf";
  const RandomModel shape{.type = GGML_TYPE_Q8_0};
  write_random_model(file, shape);
  write_random_adapter(folder.path() / "a.gguf", shape, {.rank = 8});
  Bench bench(file, {.threads = 2});
  const ResidentAdapter* adapter = bench.add_adapter(folder.path() / "a.gguf", FactorType::q8_0);
  std::vector<Bench::Text> texts(3);
  for (unsigned i = 0; i < texts.size(); ++i) texts[i].tokens = random_tokens(24, 1024, i);
  texts[1].adapters = {{adapter, 1}};
  texts[2].adapters = {{adapter, 0.5F}};
  const auto together = bench.logits(texts, 8, 16);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto alone = bench.logits(std::span(texts).subspan(i, 1), 8, 16);
    EXPECT_LT(nmse(together[i], alone[0]), 1e-6) << "text " << i;
  }
}

TEST(Forward, does_not_mistake_an_adapter_for_the_one_that_lay_at_its_address) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "base.gguf";
  const RandomModel shape{.type = GGML_TYPE_F16};
  write_random_model(file, shape);
  Bench bench(file);
  std::vector<Bench::Text> texts(1);
  texts[0].tokens = random_tokens(12, 1024, 3);
  std::vector<std::vector<float>> in_place_of_another;
  std::vector<std::vector<float>> alone;
  std::optional<ResidentAdapter> place;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    write_random_adapter(folder.path() / "a.gguf", shape, {.rank = 8, .seed = seed});
    bench.add_adapter_at(place, folder.path() / "a.gguf");
    texts[0].adapters = {{&*place, 1}};
    in_place_of_another.push_back(bench.logits(texts, 6, 12)[0]);
    Bench other(file);
    texts[0].adapters = {{other.add_adapter(folder.path() / "a.gguf", FactorType::f16), 1}};
    alone.push_back(other.logits(texts, 6, 12)[0]);
  }
  EXPECT_EQ(in_place_of_another, alone);
}

TEST(Model, refuses_what_it_cannot_run_with_the_reason) {
  const TemporaryFolder folder;
  const auto backend = Backend::open({}).value();
  const auto file = folder.path() / "base.gguf";
  write_random_model(file, {.architecture = "mamba"});
  EXPECT_THAT(Model::load(file, *backend).error().message, testing::HasSubstr("architecture 'mamba'"));
  write_random_model(file, {});
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  EXPECT_EQ(Model::load(file, *backend).error().code, ErrorCode::invalid_request);
}

}  // namespace
}  // namespace molly::engine
