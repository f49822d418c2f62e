#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <semaphore>
#include <string>
#include <vector>

#include "engine/memory/adapter_cache.h"
#include "engine/schedule/scheduler.h"

// A scheduler with real pages, prefixes and adapters over a made-up model whose arithmetic anyone can repeat.
namespace molly::engine {

inline std::uint64_t mixed(std::uint64_t left, std::uint64_t right) {
  std::uint64_t x = left * 0x9e3779b97f4a7c15U + right + 0x7f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

constexpr std::uint32_t made_up_vocabulary = 11;

// What a position leaves in the cache: it depends on all that stands before it.
struct Cell {
  std::uint64_t state = 0;
  Token token = 0;
  std::int32_t position = 0;
};

inline Cell next_cell(const Cell* before, Token token, std::uint64_t adapters) {
  const std::int32_t position = before == nullptr ? 0 : before->position + 1;
  const std::uint64_t state = before == nullptr ? adapters : before->state;
  return {.state = mixed(mixed(state, static_cast<std::uint64_t>(token)), mixed(adapters, position)),
          .token = token,
          .position = position};
}

// Mostly the last two tokens decide, so that texts repeat themselves and drafts are right now and then.
inline std::vector<float> logits_after(std::span<const Cell> cells) {
  std::uint64_t all = 0;
  for (const Cell& cell : cells) all = mixed(all, cell.state);
  const Token before = cells.size() > 1 ? cells[cells.size() - 2].token : -1;
  if (all % 8 != 0) all = mixed(static_cast<std::uint64_t>(cells.back().token), static_cast<std::uint64_t>(before));
  std::vector<float> logits;
  for (std::uint64_t token = 0; token < made_up_vocabulary; ++token) {
    logits.push_back(static_cast<float>(mixed(all, token) % 1000) / 100);
  }
  return logits;
}

inline std::vector<Cell> cells_of(std::span<const Token> tokens, std::uint64_t adapters) {
  std::vector<Cell> cells;
  for (const Token token : tokens) cells.push_back(next_cell(cells.empty() ? nullptr : &cells.back(), token, adapters));
  return cells;
}

inline std::vector<float> hidden_of(const Cell& cell) {
  return {static_cast<float>(cell.state % 100), static_cast<float>(cell.token)};
}

// As an adapter's share in a mixture is to be seen in every result.
inline std::uint64_t with_adapter(std::uint64_t adapters, std::uint64_t content, float weight) {
  return mixed(mixed(adapters, content), static_cast<std::uint64_t>(weight * 1000));
}

// Keys and values lie in pages beside adapters, as in the engine: a page that is given away too early, shared wrongly
// or not copied shows in the logits.
class MadeUpModel : public Executor {
 public:
  struct Run {
    std::uint32_t sequences = 0;
    std::uint32_t rows = 0;
  };

  MadeUpModel(PagePool& pool, std::uint32_t page_tokens, std::uint32_t max_rows)
      : pool_(pool),
        page_tokens_(page_tokens),
        max_rows_(max_rows),
        lines_(std::size_t{pool.size()} * lines_per_page()) {}

  Result<void> run(std::span<const StepSequence> sequences) override {
    outputs_.clear();
    Run run{.sequences = static_cast<std::uint32_t>(sequences.size())};
    for (const StepSequence& sequence : sequences) run.rows += static_cast<std::uint32_t>(sequence.tokens.size());
    EXPECT_GT(run.rows, 0U);
    EXPECT_LE(run.rows, max_rows_);
    runs.push_back(run);
    // Rows are written before the failure is noticed.
    for (const StepSequence& sequence : sequences) compute(sequence);
    return fails_next.exchange(false) ? failure(ErrorCode::internal, "the backend failed") : Result<void>{};
  }

  std::span<float> logits(std::uint32_t output) override { return outputs_.at(output).logits; }
  std::span<const float> hidden(std::uint32_t output) override { return outputs_.at(output).hidden; }
  void copy_page(PageId from, PageId to) override {
    EXPECT_EQ(pool_.references(to), 1U);
    std::copy_n(cell_memory(from), page_tokens_, cell_memory(to));
    ++copies;
  }
  std::uint32_t page_tokens() const override { return page_tokens_; }
  std::uint32_t vocabulary() const override { return made_up_vocabulary; }
  std::uint32_t max_rows() const override { return max_rows_; }

  std::size_t page_bytes() const { return lines_per_page() * sizeof(Line); }
  std::byte* address(PageId page) { return lines_.at(static_cast<std::size_t>(page) * lines_per_page()).bytes; }

  std::vector<Run> runs;
  std::uint32_t copies = 0;
  std::atomic<bool> fails_next = false;

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  struct Output {
    std::vector<float> logits;
    std::vector<float> hidden;
  };

  std::size_t lines_per_page() const { return (page_tokens_ * sizeof(Cell) + sizeof(Line) - 1) / sizeof(Line); }
  Cell* cell_memory(PageId page) { return reinterpret_cast<Cell*>(address(page)); }

  void compute(const StepSequence& sequence) {
    ASSERT_FALSE(sequence.tokens.empty());
    const auto end = sequence.first_position + static_cast<std::uint32_t>(sequence.tokens.size());
    ASSERT_GE(sequence.pages.size() * page_tokens_, end);
    const std::uint64_t adapters = content_of(sequence.adapters);
    std::vector<Cell> cells;
    for (std::uint32_t i = 0; i < sequence.first_position; ++i) cells.push_back(cell(sequence, i));
    for (std::uint32_t i = sequence.first_position; i < end; ++i) {
      cells.push_back(
          next_cell(cells.empty() ? nullptr : &cells.back(), sequence.tokens[i - sequence.first_position], adapters));
      const PageId page = sequence.pages[i / page_tokens_];
      EXPECT_EQ(pool_.references(page), 1U) << "what others read must not be written";
      EXPECT_EQ(pool_.use(page), PageUse::kv);
      cell(sequence, i) = cells.back();
      if (sequence.wanted == Wanted::all || (sequence.wanted == Wanted::last && i + 1 == end)) {
        outputs_.push_back({.logits = logits_after(cells), .hidden = hidden_of(cells.back())});
      }
    }
  }

  Cell& cell(const StepSequence& sequence, std::uint32_t position) {
    return cell_memory(sequence.pages[position / page_tokens_])[position % page_tokens_];
  }

  static std::uint64_t content_of(std::span<const AdapterShare> shares) {
    std::uint64_t all = 0;
    for (const auto& [adapter, weight] : shares) {
      std::uint64_t content = 0;
      for (const std::byte* row : adapter->factors(0, Projection::attn_q).a) {
        content = mixed(content, std::to_integer<std::uint64_t>(*row));
      }
      all = with_adapter(all, content, weight);
    }
    return all;
  }

  PagePool& pool_;
  std::uint32_t page_tokens_;
  std::uint32_t max_rows_;
  std::vector<Line> lines_;
  std::vector<Output> outputs_;
};

// "7x2": two pages full of sevens. "slow7x2": once the gate is open.
struct MadeUpAdapter {
  std::uint32_t number = 0;
  std::uint32_t pages = 1;

  std::string file() const { return std::to_string(number) + "x" + std::to_string(pages); }
  std::uint64_t content() const {
    std::uint64_t content = 0;
    for (std::uint32_t i = 0; i < pages; ++i) content = mixed(content, number);
    return content;
  }
  AdapterImage image(std::size_t page_bytes) const {
    AdapterImage image{.page_bytes = page_bytes, .pages = pages};
    image.parts.push_back({.rank = pages});
    for (std::uint32_t i = 0; i < 2 * pages; ++i) image.rows.push_back({.page = i % pages, .offset = 0});
    image.bytes.assign(pages * page_bytes, static_cast<std::byte>(number));
    return image;
  }
};

// Greedy, but with a state of its own, so that a token chosen twice or never shows in all that follow.
class CountingChooser : public TokenChooser {
 public:
  explicit CountingChooser(std::uint64_t seed, bool ends = false) : seed_(seed), ends_(ends) {}
  Choice choose(std::span<float> logits) override {
    ++count_;
    if (seed_ != 0) {
      for (std::size_t token = 0; token < logits.size(); ++token) {
        logits[token] += static_cast<float>(mixed(mixed(seed_, count_), token) % 200) / 100;
      }
    }
    const auto token = static_cast<Token>(std::ranges::max_element(logits) - logits.begin());
    return {.token = token, .end_of_generation = ends_ && token == 0};
  }
  std::unique_ptr<TokenChooser> clone() const override { return std::make_unique<CountingChooser>(*this); }

 private:
  std::uint64_t seed_;
  bool ends_;
  std::uint64_t count_ = 0;
};

struct RecordingSink : TokenSink {
  std::vector<Token> tokens;
  std::vector<TokenLogprob> logprobs;
  std::vector<float> embedding;
  std::optional<FinishReason> reason;
  std::optional<Error> error;
  GenerationTimings timings;
  std::uint32_t prompt_calls = 0;
  std::size_t stop_at = SIZE_MAX;
  const MadeUpModel* model = nullptr;
  std::size_t first_token_after = 0;  // runs of the model

  bool ended() const { return reason || error; }
  Reaction on_token(const Choice& choice) override {
    EXPECT_FALSE(ended());
    if (tokens.empty()) first_token_after = model->runs.size();
    tokens.push_back(choice.token);
    return tokens.size() >= stop_at ? Reaction::stop : Reaction::go_on;
  }
  void on_prompt_logprobs(std::span<const TokenLogprob> of_prompt) override {
    EXPECT_TRUE(tokens.empty());
    ++prompt_calls;
    logprobs.assign(of_prompt.begin(), of_prompt.end());
  }
  void on_embedding(std::span<const float> pooled) override { embedding.assign(pooled.begin(), pooled.end()); }
  void on_end(FinishReason why, const GenerationTimings& spent) override {
    EXPECT_FALSE(ended());
    reason = why;
    timings = spent;
  }
  void on_error(Error what, const GenerationTimings& spent) override {
    EXPECT_FALSE(ended());
    error = std::move(what);
    timings = spent;
  }
};

struct WorldOptions {
  std::uint32_t pages = 64;
  std::uint32_t page_tokens = 4;
  std::uint32_t max_rows = 64;
  SchedulerOptions schedule{.prefill_chunk = 16, .context_length = 200};
};

class World {
 public:
  using Clock = Scheduler::Clock;

  explicit World(WorldOptions options = {})
      : pool(options.pages),
        model(pool, options.page_tokens, options.max_rows),
        prefixes(pool, options.page_tokens),
        adapters(pool, PageMemory{[this](PageId page) { return model.address(page); }},
                 [this](const std::filesystem::path& file) { return read_adapter(file.string()); }, {.layers = 1}),
        scheduler(model, pool, prefixes, adapters, with_clock(std::move(options.schedule))) {
    adapters.on_loaded([this] { loaded_.release(); });
  }

  AdapterId add(MadeUpAdapter adapter, const std::string& prefix = "") {
    return *adapters.add(prefix + std::to_string(adapter.number), prefix + adapter.file(), "1");
  }
  void open_gate() { gate_.release(); }

  GenerationRequest request(std::vector<Token> prompt, std::uint32_t max_tokens) {
    GenerationRequest request{.prompt = std::move(prompt), .max_tokens = max_tokens};
    request.chooser = std::make_unique<CountingChooser>(0);
    return request;
  }

  std::shared_ptr<RecordingSink> submit(GenerationRequest request) {
    auto sink = std::make_shared<RecordingSink>();
    sink->model = &model;
    request.sink = sink;
    const auto id = scheduler.submit(std::move(request), now);
    if (id) {
      last_id = *id;
    } else {
      sink->error = id.error();
    }
    return sink;
  }

  bool step() {
    now += std::chrono::milliseconds(1);
    return scheduler.step(now);
  }
  void run() {
    for (int steps = 0; scheduler.running() + scheduler.waiting() > 0; ++steps) {
      ASSERT_LT(steps, 20'000) << "no progress";
      if (!step()) await_load();
    }
  }
  void await_load() { (void)loaded_.try_acquire_for(std::chrono::milliseconds(200)); }

  std::uint32_t rows() const {
    std::uint32_t rows = 0;
    for (const auto& run : model.runs) rows += run.rows;
    return rows;
  }

  void expect_nothing_leaked() {
    EXPECT_EQ(pool.free() + prefixes.pages() + pool.held(PageUse::adapter), pool.size());
    prefixes.clear();
    while (adapters.evict_cheapest(now) > 0) {
    }
    EXPECT_EQ(pool.free(), pool.size());
  }

  Clock::time_point now{std::chrono::hours(1)};
  PagePool pool;
  MadeUpModel model;
  PrefixTree prefixes;

 private:
  SchedulerOptions with_clock(SchedulerOptions options) {
    options.clock = [this] { return now; };
    return options;
  }
  Result<AdapterImage> read_adapter(std::string file) {
    if (file.starts_with("slow")) {
      gate_.acquire();
      file = file.substr(4);
    }
    const auto cross = file.find('x');
    if (cross == std::string::npos) return failure(ErrorCode::invalid_request, "not an adapter");
    const MadeUpAdapter adapter{.number = static_cast<std::uint32_t>(std::stoul(file.substr(0, cross))),
                                .pages = static_cast<std::uint32_t>(std::stoul(file.substr(cross + 1)))};
    return adapter.image(model.page_bytes());
  }

  std::counting_semaphore<> gate_{0};
  std::counting_semaphore<> loaded_{0};

 public:
  AdapterCache adapters;
  Scheduler scheduler;
  GenerationId last_id = 0;
};

// What a request says when it is alone on the machine: no pages, no batches.
inline std::vector<Token> tokens_alone(std::vector<Token> tokens, std::uint32_t max_tokens, std::uint64_t adapters,
                                       TokenChooser& chooser) {
  std::vector<Token> generated;
  while (generated.size() < max_tokens) {
    auto logits = logits_after(cells_of(tokens, adapters));
    const auto choice = chooser.choose(logits);
    generated.push_back(choice.token);
    tokens.push_back(choice.token);
    if (choice.end_of_generation) break;
  }
  return generated;
}

inline std::vector<Token> tokens_alone(std::vector<Token> tokens, std::uint32_t max_tokens) {
  CountingChooser chooser(0);
  return tokens_alone(std::move(tokens), max_tokens, 0, chooser);
}

inline std::vector<Token> some_tokens(std::uint64_t seed, std::size_t count) {
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<Token>(mixed(seed, i) % made_up_vocabulary));
  }
  return tokens;
}

}  // namespace molly::engine
