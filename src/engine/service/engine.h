#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "engine/memory/adapter_cache.h"
#include "engine/model/backend.h"
#include "engine/model/forward.h"
#include "engine/model/model.h"
#include "engine/schedule/scheduler.h"
#include "engine/text/chat_template.h"
#include "engine/text/vocabulary.h"

namespace molly::engine {

struct EngineOptions {
  std::filesystem::path model;
  std::string name;  // what /v1/models says; empty: the file's name
  BackendOptions backend;
  std::uint64_t pool_bytes = 256ULL << 20;
  std::uint32_t page_tokens = 64;
  KvType kv_type = KvType::f16;
  FactorType adapter_type = FactorType::f16;
  std::uint64_t warm_bytes = 512ULL << 20;       // of adapters in host memory
  std::uint32_t max_rows = 256;                  // of one forward pass
  std::filesystem::path draft_model;             // with the same vocabulary, to guess what the model says; empty: none
  std::uint64_t draft_pool_bytes = 64ULL << 20;  // keys and values of the draft model
  SchedulerOptions schedule;
};

// What /metrics and /health tell.
struct EngineStatus {
  SchedulerCounters counters;
  StepCost step_cost;
  AdapterCacheCounters adapters;
  std::uint32_t running = 0;
  std::uint32_t waiting = 0;
  std::uint32_t pages = 0;
  std::uint32_t free_pages = 0;
  std::uint32_t prefix_pages = 0;
  std::uint32_t adapter_pages = 0;
  std::uint64_t page_bytes = 0;
};

// A model with its adapters, ready to generate: one thread of its own runs the scheduler. Thread-safe.
class Engine {
 public:
  // Errors as from Model::load, Forward::create and Vocabulary::can_draft_for. Blocks until the model is loaded.
  static Result<std::unique_ptr<Engine>> start(const EngineOptions& options);
  // Ends every generation (cancelled) and joins the thread.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // The sink is called on the engine's thread, on_end or on_error last, also when the request is refused.
  GenerationId submit(GenerationRequest request);
  void cancel(GenerationId id);
  // Guesses for the generation that has this draft channel. Does not wait; nothing happens when there is none.
  void push_draft(std::string channel, std::uint32_t position, std::vector<Token> tokens);

  // Waits for the engine's thread, at most one step.
  Result<AdapterId> add_adapter(std::string name, const std::filesystem::path& file);
  Result<void> remove_adapter(std::string_view name);
  // A hint that requests for it are to come.
  Result<void> prefetch_adapter(std::string_view name);
  // Does not wait. not_found names the first that is not there.
  Result<std::vector<AdapterWeight>> find_adapters(std::span<const std::pair<std::string, float>> wanted) const;
  std::vector<AdapterStatus> adapters() const;
  EngineStatus status() const;

  const Model& model() const;
  const Vocabulary& vocabulary() const;
  const ChatTemplate* chat_template() const;  // null: the model has none
  const EngineOptions& options() const;

 private:
  struct State;
  explicit Engine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace molly::engine
