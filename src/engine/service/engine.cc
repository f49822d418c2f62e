#include "engine/service/engine.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "engine/service/draft_model.h"
#include "engine/service/file_version.h"
#include "engine/service/pool_pages.h"

namespace molly::engine {
namespace {

using Clock = Scheduler::Clock;

// How long the thread sleeps when nothing can run: adapters being loaded and deadlines are looked at this often.
constexpr std::chrono::milliseconds idle_wait{50};
constexpr std::chrono::milliseconds longest_gathering{10};
constexpr double gathering_share = 0.05;  // of what the prompts that are there will take

std::string token_text(const Vocabulary& vocabulary, std::optional<Token> token) {
  return token ? vocabulary.piece(*token, SpecialTokens::parsed) : std::string();
}

Result<std::unique_ptr<ChatTemplate>> read_template(const Model& model, const Vocabulary& vocabulary) {
  if (model.file().chat_template.empty()) return nullptr;
  return ChatTemplate::parse(model.file().chat_template, token_text(vocabulary, vocabulary.beginning()),
                             token_text(vocabulary, vocabulary.end()));
}

}  // namespace

struct Engine::State {
  EngineOptions options;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
  std::unique_ptr<Vocabulary> vocabulary;
  std::unique_ptr<ChatTemplate> chat_template;
  std::unique_ptr<Forward> forward;
  std::unique_ptr<PagePool> pool;
  std::unique_ptr<PrefixTree> prefixes;
  std::unique_ptr<AdapterCache> adapters;
  std::unique_ptr<DraftModel> draft_model;  // null: none
  std::unique_ptr<Scheduler> scheduler;

  mutable std::mutex mutex;
  std::condition_variable wake;
  std::deque<std::function<void()>> tasks;
  bool stopping = false;
  bool woken = false;
  std::atomic<GenerationId> next_id{1};
  std::map<std::string, AdapterId, std::less<>> adapter_names;  // of the cache's, under the mutex: asking must not wait
  std::map<GenerationId, GenerationId> scheduled;               // ours to the scheduler's; engine thread
  std::thread thread;

  void post(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex);
      tasks.push_back(std::move(task));
    }
    wake.notify_one();
  }

  template <class Function>
  auto call(Function function) {
    using Value = std::invoke_result_t<Function>;
    auto task = std::make_shared<std::packaged_task<Value()>>(std::move(function));
    auto result = task->get_future();
    post([task] { (*task)(); });
    return result.get();
  }

  void run_tasks(Clock::duration most) {
    std::deque<std::function<void()>> taken;
    {
      std::unique_lock lock(mutex);
      wake.wait_for(lock, most, [&] { return stopping || woken || !tasks.empty(); });
      woken = false;
      taken.swap(tasks);
    }
    for (auto& task : taken) task();
  }

  bool is_stopping() const {
    const std::lock_guard lock(mutex);
    return stopping;
  }

  // Requests that come together have their first tokens together, if the first of them waits a moment for the others.
  void gather() {
    const std::chrono::duration<double, std::milli> prefill{scheduler->step_cost().per_row() *
                                                            static_cast<double>(scheduler->waiting_tokens())};
    const auto moment = std::min<Clock::duration>(
        longest_gathering, std::chrono::duration_cast<Clock::duration>(prefill * gathering_share));
    for (const auto end = Clock::now() + moment; Clock::now() < end && !is_stopping();) run_tasks(end - Clock::now());
  }

  void run() {
    bool busy = false;
    while (!is_stopping()) {
      const bool idle = scheduler->running() + scheduler->waiting() == 0;
      run_tasks(busy ? Clock::duration::zero() : idle_wait);
      if (idle) gather();
      adapters->poll(Clock::now());
      busy = scheduler->step(Clock::now());
    }
    run_tasks(Clock::duration::zero());
    // Each cancellation takes its own entry out of the list.
    while (!scheduled.empty()) scheduler->cancel(scheduled.begin()->second);
  }

  void submit_now(GenerationId id, GenerationRequest request);
};

namespace {

// Passes everything on, and forgets the generation's number at its end.
class EndingSink : public TokenSink {
 public:
  EndingSink(std::shared_ptr<TokenSink> sink, std::function<void()> ended)
      : sink_(std::move(sink)), ended_(std::move(ended)) {}
  Reaction on_token(const Choice& choice) override { return sink_->on_token(choice); }
  void on_prompt_logprobs(std::span<const TokenLogprob> logprobs) override { sink_->on_prompt_logprobs(logprobs); }
  void on_embedding(std::span<const float> embedding) override { sink_->on_embedding(embedding); }
  void on_end(FinishReason reason, const GenerationTimings& timings) override {
    sink_->on_end(reason, timings);
    ended_();
  }
  void on_error(Error error, const GenerationTimings& timings) override {
    sink_->on_error(std::move(error), timings);
    ended_();
  }

 private:
  std::shared_ptr<TokenSink> sink_;
  std::function<void()> ended_;
};

}  // namespace

void Engine::State::submit_now(GenerationId id, GenerationRequest request) {
  const std::shared_ptr<TokenSink> sink = request.sink;
  // Ending inside submit() is possible; then there is nothing to remember.
  auto ended = std::make_shared<bool>(false);
  request.sink = std::make_shared<EndingSink>(sink, [this, id, ended] {
    *ended = true;
    scheduled.erase(id);
  });
  const auto submitted = scheduler->submit(std::move(request), Clock::now());
  if (!submitted) return sink->on_error(submitted.error(), {});
  if (!*ended) scheduled.emplace(id, *submitted);
}

Result<std::unique_ptr<Engine>> Engine::start(const EngineOptions& options) {
  auto state = std::make_unique<State>();
  state->options = options;
  if (state->options.name.empty()) state->options.name = options.model.stem().string();
  auto backend = Backend::open(options.backend);
  if (!backend) return std::unexpected(backend.error());
  state->backend = std::move(*backend);
  auto model = Model::load(options.model, *state->backend);
  if (!model) return std::unexpected(model.error());
  state->model = std::move(*model);
  auto vocabulary = Vocabulary::open(options.model);
  if (!vocabulary) return std::unexpected(vocabulary.error());
  state->vocabulary = std::move(*vocabulary);
  auto chat_template = read_template(*state->model, *state->vocabulary);
  if (!chat_template) return std::unexpected(chat_template.error());
  state->chat_template = std::move(*chat_template);
  const std::size_t page = page_bytes(state->model->config(), options.page_tokens, options.kv_type);
  const auto pages = pages_of_pool(options.pool_bytes, page, "pool");
  if (!pages) return std::unexpected(pages.error());
  auto forward = Forward::create(
      *state->model, *state->backend,
      {.pages = *pages, .page_tokens = options.page_tokens, .kv_type = options.kv_type, .max_rows = options.max_rows});
  if (!forward) return std::unexpected(forward.error());
  state->forward = std::move(*forward);
  State* const s = state.get();
  state->pool = std::make_unique<PagePool>(*pages);
  state->prefixes = std::make_unique<PrefixTree>(*state->pool, options.page_tokens);
  state->adapters = std::make_unique<AdapterCache>(
      *state->pool, PageMemory{[s](PageId id) { return s->forward->page_address(id); }},
      [s](const std::filesystem::path& file) -> Result<AdapterImage> {
        const auto read = read_lora_file(file, s->model->base_shape());
        if (!read) return std::unexpected(read.error());
        return make_image(*read, s->options.adapter_type, s->forward->bytes_of_page());
      },
      AdapterCacheOptions{.warm_bytes = options.warm_bytes, .layers = state->model->config().n_layer});
  state->adapters->on_loaded([s] {
    {
      const std::lock_guard lock(s->mutex);
      s->woken = true;
    }
    s->wake.notify_one();
  });
  state->scheduler =
      std::make_unique<Scheduler>(*state->forward, *state->pool, *state->prefixes, *state->adapters, options.schedule);
  if (!options.draft_model.empty()) {
    auto draft_model = DraftModel::open(options, *state->backend, *state->vocabulary);
    if (!draft_model) return std::unexpected(draft_model.error());
    state->draft_model = std::move(*draft_model);
    state->scheduler->set_model_drafter(state->draft_model->take_drafter());
  }
  state->thread = std::thread([s] { s->run(); });
  return std::unique_ptr<Engine>(new Engine(std::move(state)));
}

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}

Engine::~Engine() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->wake.notify_one();
  state_->thread.join();
}

GenerationId Engine::submit(GenerationRequest request) {
  const GenerationId id = state_->next_id.fetch_add(1);
  auto shared = std::make_shared<GenerationRequest>(std::move(request));
  state_->post([s = state_.get(), id, shared] { s->submit_now(id, std::move(*shared)); });
  return id;
}

void Engine::cancel(GenerationId id) {
  state_->post([s = state_.get(), id] {
    const auto found = s->scheduled.find(id);
    if (found != s->scheduled.end()) s->scheduler->cancel(found->second);
  });
}

void Engine::push_draft(std::string channel, std::uint32_t position, std::vector<Token> tokens) {
  state_->post([s = state_.get(), channel = std::move(channel), position, tokens = std::move(tokens)] {
    s->scheduler->push_draft(channel, position, tokens);
  });
}

Result<AdapterId> Engine::add_adapter(std::string name, const std::filesystem::path& file) {
  auto version = file_version(file);
  if (!version) return std::unexpected(version.error());
  return state_->call([&]() -> Result<AdapterId> {
    auto added = state_->adapters->add(name, file, std::move(*version));
    if (!added) return added;
    const std::lock_guard lock(state_->mutex);
    state_->adapter_names.emplace(std::move(name), *added);
    return added;
  });
}

Result<void> Engine::remove_adapter(std::string_view name) {
  return state_->call([&]() -> Result<void> {
    auto removed = state_->adapters->remove(name);
    if (!removed) return removed;
    const std::lock_guard lock(state_->mutex);
    state_->adapter_names.erase(std::string(name));
    return removed;
  });
}

Result<void> Engine::prefetch_adapter(std::string_view name) {
  const std::pair<std::string, float> wanted(name, 1.0F);
  auto found = find_adapters({&wanted, 1});
  if (!found) {
    found.error().field = "name";
    return std::unexpected(std::move(found.error()));
  }
  state_->post([s = state_.get(), id = found->front().adapter] { s->adapters->prefetch(id); });
  return {};
}

Result<std::vector<AdapterWeight>> Engine::find_adapters(std::span<const std::pair<std::string, float>> wanted) const {
  std::vector<AdapterWeight> out;
  out.reserve(wanted.size());
  const std::lock_guard lock(state_->mutex);
  for (const auto& [name, weight] : wanted) {
    const auto found = state_->adapter_names.find(name);
    if (found == state_->adapter_names.end()) {
      return failure(ErrorCode::not_found, "there is no adapter '" + name + "'", "adapter");
    }
    out.push_back({found->second, weight});
  }
  return out;
}

std::vector<AdapterStatus> Engine::adapters() const {
  return state_->call([&] { return state_->adapters->status(); });
}

EngineStatus Engine::status() const {
  return state_->call([s = state_.get()] {
    return EngineStatus{.counters = s->scheduler->counters(),
                        .step_cost = s->scheduler->step_cost(),
                        .adapters = s->adapters->counters(),
                        .running = s->scheduler->running(),
                        .waiting = s->scheduler->waiting(),
                        .pages = s->pool->size(),
                        .free_pages = s->pool->free(),
                        .prefix_pages = s->prefixes->pages(),
                        .adapter_pages = s->pool->held(PageUse::adapter),
                        .page_bytes = s->forward->bytes_of_page()};
  });
}

const Model& Engine::model() const { return *state_->model; }
const Vocabulary& Engine::vocabulary() const { return *state_->vocabulary; }
const ChatTemplate* Engine::chat_template() const { return state_->chat_template.get(); }
const EngineOptions& Engine::options() const { return state_->options; }

}  // namespace molly::engine
