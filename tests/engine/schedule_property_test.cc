#include <array>
#include <random>

#include "engine/schedule/model_drafter.h"
#include "schedule_world.h"

// Random requests in random company. Whatever happens to the others, each must say what it says alone.
namespace molly::engine {
namespace {

using testing::Le;

struct Expected {
  std::vector<Token> prompt;
  std::vector<Token> tokens;
  std::uint32_t max_tokens = 0;
  std::uint32_t pages = 0;  // with its adapters
  bool wants_logprobs = false;
  GenerationId id = 0;
  std::shared_ptr<RecordingSink> sink;
};

class RandomRun {
 public:
  explicit RandomRun(unsigned seed)
      : random_(seed),
        draft_pool_(4 + below(40)),
        draft_model_(draft_pool_, 1 + below(8), 4 + below(40)),
        world_(some_options()) {
    for (std::uint32_t i = 0; i < adapters_.size(); ++i) {
      adapters_[i] = {.number = i + 1, .pages = 1 + below(3)};
      ids_[i] = world_.add(adapters_[i]);
    }
    // Right for requests without an adapter, as far as it has room for them.
    world_.scheduler.set_model_drafter(std::make_unique<ModelDrafter>(
        draft_model_, draft_pool_, std::make_shared<StepCost>(),
        ModelDrafterOptions{.max_pages = draft_pool_.size(), .max_rows = 1 + below(40)}));
  }

  void go() {
    const std::uint32_t requests = 5 + below(30);
    while (all_.size() < requests) {
      for (auto count = below(4); count > 0; --count) submit();
      for (auto steps = below(6); steps > 0; --steps) {
        if (one_in(12)) world_.scheduler.cancel(all_.empty() ? 0 : all_[below(all_.size())].id);
        if (one_in(60)) world_.model.fails_next = true;
        world_.step();
      }
    }
    world_.run();
    for (const Expected& expected : all_) check(expected);
    drafts_ = world_.scheduler.counters().drafts;
    world_.expect_nothing_leaked();
    EXPECT_EQ(draft_pool_.free(), draft_pool_.size());
  }

  std::uint64_t preemptions() const { return world_.scheduler.counters().preemptions; }
  const DraftTally& drafts() const { return drafts_; }
  std::uint64_t cached() const { return world_.scheduler.counters().cached_tokens; }
  std::uint32_t copies() const { return world_.model.copies; }

 private:
  std::uint32_t below(std::size_t limit) { return static_cast<std::uint32_t>(random_() % limit); }
  bool one_in(std::size_t count) { return below(count) == 0; }

  WorldOptions some_options() {
    const std::uint32_t page_tokens = 1 + below(8);
    WorldOptions options{.pages = 8 + below(200 / page_tokens), .page_tokens = page_tokens, .max_rows = 8 + below(60)};
    options.schedule.max_running = 1 + below(12);
    options.schedule.prefill_chunk = 1 + below(40);
    options.schedule.context_length = 60;
    return options;
  }

  std::vector<Token> some_prompt() {
    auto prompt = some_tokens(below(3), one_in(4) ? 0 : 24 - below(8));
    const auto own = some_tokens(100 + below(4), 1 + below(12));
    prompt.insert(prompt.end(), own.begin(), own.end());
    return prompt;
  }

  void submit() {
    Expected expected{.prompt = some_prompt(), .max_tokens = below(25), .wants_logprobs = one_in(5)};
    GenerationRequest request{.prompt = expected.prompt, .max_tokens = expected.max_tokens};
    std::uint64_t content = 0;
    for (std::size_t i = 0; i < adapters_.size(); ++i) {
      if (!one_in(8)) continue;
      const float weight = one_in(4) ? 0.5F : 1.0F;
      request.adapters.push_back({.adapter = ids_[i], .weight = weight});
      content = with_adapter(content, adapters_[i].content(), weight);
      expected.pages += adapters_[i].pages;
    }
    const std::uint64_t seed = one_in(2) ? 0 : below(1000);
    const bool ends = one_in(2);
    request.domain = std::array{"", "mine", "mine", "yours"}[below(4)];
    request.member = std::array{"", "ann", "bob"}[below(3)];
    request.priority = one_in(4) ? 1 : 0;
    request.prompt_logprobs = expected.wants_logprobs;
    request.pooling = one_in(6) ? Pooling::mean : Pooling::none;
    request.drafting =
        std::array{Drafting::off, Drafting::automatic, Drafting::ngram, Drafting::model, Drafting::base}[below(5)];
    request.chooser = std::make_unique<CountingChooser>(seed, ends);
    CountingChooser chooser(seed, ends);
    const auto room = 60 - static_cast<std::uint32_t>(expected.prompt.size());
    expected.tokens = tokens_alone(expected.prompt, std::min(expected.max_tokens, room), content, chooser);
    const auto page_tokens = world_.model.page_tokens();
    expected.pages += (static_cast<std::uint32_t>(expected.prompt.size()) + expected.max_tokens) / page_tokens + 1;
    expected.sink = world_.submit(std::move(request));
    expected.id = world_.last_id;
    all_.push_back(std::move(expected));
  }

  void check(const Expected& expected) {
    const RecordingSink& sink = *expected.sink;
    ASSERT_TRUE(sink.ended());
    ASSERT_THAT(sink.tokens.size(), Le(expected.tokens.size()));
    const auto begin = expected.tokens.begin();
    EXPECT_EQ(sink.tokens, std::vector<Token>(begin, begin + static_cast<std::ptrdiff_t>(sink.tokens.size())));
    EXPECT_THAT(sink.prompt_calls, Le(1U));
    if (sink.reason && *sink.reason != FinishReason::cancelled) {
      EXPECT_EQ(sink.tokens.size(), expected.tokens.size());
      EXPECT_EQ(sink.prompt_calls, expected.wants_logprobs ? 1U : 0U);
    }
    EXPECT_EQ(sink.logprobs.size(), sink.prompt_calls == 0 ? 0 : expected.prompt.size() - 1);
    if (sink.error && sink.error->code != ErrorCode::internal) {
      EXPECT_GT(expected.pages, world_.pool.size()) << sink.error->message;
    }
  }

  std::mt19937 random_;
  PagePool draft_pool_;
  MadeUpModel draft_model_;
  std::array<MadeUpAdapter, 4> adapters_;
  std::array<AdapterId, 4> ids_{};
  World world_;
  std::vector<Expected> all_;
  DraftTally drafts_;
};

TEST(ScheduleProperty, requests_say_in_any_company_what_they_say_alone) {
  std::uint64_t preemptions = 0;
  DraftTally drafts;
  std::uint64_t cached = 0;
  std::uint32_t copies = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    RandomRun run(seed);
    run.go();
    if (HasFailure()) return;
    preemptions += run.preemptions();
    for (const DraftKind kind : draft_kinds) drafts[kind].accepted += run.drafts()[kind].accepted;
    cached += run.cached();
    copies += run.copies();
  }
  // Else this would have shown nothing.
  EXPECT_GT(preemptions, 100U);
  EXPECT_GT(drafts[DraftKind::ngram].accepted, 100U);
  EXPECT_GT(drafts[DraftKind::model].accepted, 500U);
  EXPECT_GT(drafts[DraftKind::base].accepted, 20U);
  EXPECT_GT(cached, 1000U);
  EXPECT_GT(copies, 20U);
}

}  // namespace
}  // namespace molly::engine
