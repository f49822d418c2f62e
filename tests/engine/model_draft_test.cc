// Drafts with real models: what is said at temperature 0 must not change, token for token.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <random>

#include "../temporary_folder.h"
#include "engine/service/engine.h"
#include "engine/text/sampler.h"
#include "random_model.h"

namespace molly::engine {
namespace {

using testing::HasSubstr;

constexpr std::size_t prompts = 200;
constexpr std::uint32_t answer_tokens = 24;

class FutureSink : public TokenSink {
 public:
  struct Answer {
    std::vector<Token> tokens;
    GenerationTimings timings;
  };

  Reaction on_token(const Choice& choice) override {
    answer_.tokens.push_back(choice.token);
    return Reaction::go_on;
  }
  void on_end(FinishReason, const GenerationTimings& timings) override {
    answer_.timings = timings;
    promise_.set_value(std::move(answer_));
  }
  void on_error(Error error, const GenerationTimings&) override {
    ADD_FAILURE() << error.message;
    promise_.set_value({});
  }
  std::future<Answer> answer() { return promise_.get_future(); }

 private:
  Answer answer_;
  std::promise<Answer> promise_;
};

// The drafting model has the first layers of the other, whose last ones add little.
RandomModel large(ggml_type type) { return {.n_layer = 4, .type = type, .fine_from = 2, .fine = 0.3F}; }
RandomModel small(ggml_type type) { return {.n_layer = 2, .type = type}; }

class Drafted : public testing::TestWithParam<ggml_type> {
 protected:
  void SetUp() override {
    write_random_model(file("large"), large(GetParam()));
    write_random_model(file("small"), small(GetParam()));
    for (std::uint64_t i = 0; i < 2; ++i) {
      const auto name = "adapter" + std::to_string(i);
      write_random_adapter(file(name), large(GetParam()), {.rank = 8, .seed = i + 1, .strength = 0.3F});
    }
    EngineOptions options{.model = file("large"),
                          .backend = {.threads = 1},
                          .pool_bytes = 16 << 20,
                          .page_tokens = 16,
                          .draft_model = file("small"),
                          .draft_pool_bytes = 2 << 20};
    // Nothing takes time, so that drafts are verified even where they do not pay.
    options.schedule.clock = [] { return Scheduler::Clock::time_point{}; };
    auto started = Engine::start(options);
    ASSERT_TRUE(started) << started.error().message;
    engine_ = std::move(*started);
    for (const char* name : {"adapter0", "adapter1"})
      adapters_.push_back(engine_->add_adapter(name, file(name)).value());
  }

  std::filesystem::path file(const std::string& name) const { return folder_.path() / (name + ".gguf"); }

  GenerationRequest request(std::size_t number) const {
    std::mt19937 random(static_cast<unsigned>(number));
    GenerationRequest request{.prompt = {1}, .max_tokens = answer_tokens};
    while (request.prompt.size() < 4 + number % 20) {
      request.prompt.push_back(static_cast<Token>(260 + random() % 700));
    }
    request.task_class = std::to_string(number);  // nothing is known of it: as much is drafted each time
    if (number % 3 != 0) request.adapters = {{.adapter = adapters_[number % 3 - 1]}};
    return request;
  }

  std::vector<FutureSink::Answer> ask(Drafting drafting) {
    std::vector<std::future<FutureSink::Answer>> asked;
    for (std::size_t number = 0; number < prompts; ++number) {
      auto one = request(number);
      const SamplingSettings greedy{.temperature = 0, .ignore_end = true};
      one.chooser = make_chooser(engine_->vocabulary(), greedy, one.prompt).value();
      one.drafting = drafting;
      auto sink = std::make_shared<FutureSink>();
      asked.push_back(sink->answer());
      one.sink = std::move(sink);
      engine_->submit(std::move(one));
    }
    std::vector<FutureSink::Answer> answers;
    answers.reserve(asked.size());
    for (auto& one : asked) answers.push_back(one.get());
    return answers;
  }

  TemporaryFolder folder_;
  std::unique_ptr<Engine> engine_;
  std::vector<AdapterId> adapters_;
};

TEST_P(Drafted, by_any_source_the_answer_is_the_same_token_for_token) {
  const auto plain = ask(Drafting::off);
  for (const Drafting drafting : {Drafting::ngram, Drafting::model, Drafting::base, Drafting::automatic}) {
    const auto drafted = ask(drafting);
    DraftTally drafts;
    for (std::size_t i = 0; i < prompts; ++i) {
      EXPECT_EQ(drafted[i].tokens, plain[i].tokens) << "prompt " << i << ", source " << static_cast<int>(drafting);
      for (const DraftKind kind : draft_kinds) {
        drafts[kind].drafted += drafted[i].timings.drafts[kind].drafted;
        drafts[kind].accepted += drafted[i].timings.drafts[kind].accepted;
      }
    }
    for (const DraftKind kind : draft_kinds) {
      RecordProperty(std::string(to_string(kind)) + "_drafted", std::to_string(drafts[kind].drafted));
      RecordProperty(std::string(to_string(kind)) + "_accepted", std::to_string(drafts[kind].accepted));
    }
    EXPECT_GT(total(drafts).accepted, drafting == Drafting::ngram ? 5U : 500U) << "else this would have shown nothing";
    EXPECT_GT(total(drafts).drafted, total(drafts).accepted) << "some must be wrong as well";
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Drafted, testing::Values(GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0),
                         [](const auto& instance) {
                           std::string name = ggml_type_name(instance.param);
                           std::erase(name, '_');
                           return name;
                         });

Error error_of_drafting_with(const std::filesystem::path& draft_model, const std::filesystem::path& model) {
  const auto started =
      Engine::start({.model = model, .backend = {.threads = 1}, .pool_bytes = 16 << 20, .draft_model = draft_model});
  return started ? Error{} : started.error();
}

TEST(DraftModel, with_another_vocabulary_is_refused_with_the_first_token_that_differs) {
  const TemporaryFolder folder;
  const auto model = folder.path() / "model.gguf";
  const auto drafting = folder.path() / "draft.gguf";
  write_random_model(model, {.n_layer = 1});
  write_random_model(drafting, {.n_layer = 1, .n_vocab = 512});
  EXPECT_THAT(error_of_drafting_with(drafting, model).message, HasSubstr("512 and 1024 tokens"));
  write_random_model(drafting, {.n_layer = 1, .first_piece_name = "other"});
  const Error error = error_of_drafting_with(drafting, model);
  EXPECT_EQ(error.code, ErrorCode::invalid_request);
  EXPECT_EQ(error.field, "draft-model");
  EXPECT_THAT(error.message,
              HasSubstr("draft.gguf cannot draft for this model: the vocabularies differ first in token"));
  EXPECT_THAT(error.message, HasSubstr("259: '\xe2\x96\x81other' and '\xe2\x96\x81piece259'"));
}

}  // namespace
}  // namespace molly::engine
