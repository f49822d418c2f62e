#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "core/error.h"
#include "engine/model/backend.h"
#include "engine/model/graph.h"
#include "engine/model/graph_operations.h"
#include "engine/model/model.h"
#include "engine/model/step.h"
#include "engine/schedule/executor.h"

namespace molly::engine {

// Own kernels need the processor; ggml's operations run on every backend, and are what the kernels are held against.
// With `stock`, attention sums values in half precision, as ggml and libllama do by default; with `stock_single` in
// single precision, as own kernels do.
enum class OperationSet : std::uint8_t { own_kernels, stock, stock_single };

// Operations for passes over `pool`; what they read of a pass is in `step`. Both outlive them.
using MakeOperations = std::function<std::unique_ptr<GraphOperations>(const ModelConfig& config, const Backend& backend,
                                                                      StepData& step, const PoolLayout& pool)>;

struct ForwardOptions {
  std::uint32_t pages = 0;         // of the pool
  std::uint32_t page_tokens = 64;  // tokens of keys and values that a page holds
  KvType kv_type = KvType::f16;
  std::uint32_t max_rows = 512;  // of one pass
  Isa isa = best_isa();
  OperationSet operations = OperationSet::own_kernels;
  MakeOperations make_operations = {};  // when there, in place of `operations`: for measuring against others
};

// Bytes of one page: keys and values of page_tokens tokens in every layer.
std::size_t page_bytes(const ModelConfig& config, std::uint32_t page_tokens, KvType type);

// Forward passes of one model over the page pool, with own kernels. Used by the engine's thread only.
class Forward : public Executor {
 public:
  // overloaded: no memory for the pool. invalid_request: ggml's operations cannot address such pages. `model` and
  // `backend` must outlive it.
  static Result<std::unique_ptr<Forward>> create(const Model& model, Backend& backend, const ForwardOptions& options);
  ~Forward() override;

  Result<void> run(std::span<const StepSequence> sequences) override;
  std::span<float> logits(std::uint32_t output) override;
  std::span<const float> hidden(std::uint32_t output) override;
  void copy_page(PageId from, PageId to) override;
  std::uint32_t page_tokens() const override { return options_.page_tokens; }
  std::uint32_t vocabulary() const override { return model_.config().n_vocab; }
  std::uint32_t max_rows() const override { return options_.max_rows; }

  std::size_t bytes_of_page() const { return pool_.page_bytes; }
  std::byte* page_address(PageId page) const { return pool_.base + static_cast<std::size_t>(page) * pool_.page_bytes; }
  std::uint64_t compute_bytes() const;  // activations

 private:
  struct Shape {
    std::uint32_t rows = 0;
    std::uint32_t outputs = 0;
    bool adapters = false;
    bool operator==(const Shape&) const = default;
  };
  struct CachedGraph {
    Shape shape;
    std::unique_ptr<ForwardGraph> graph;
  };
  struct FreeAllocator {
    void operator()(ggml_gallocr* allocator) const { ggml_gallocr_free(allocator); }
  };

  Forward(const Model& model, Backend& backend, const ForwardOptions& options);
  Result<void> reserve_pool();
  Result<void> reserve_activations();
  Result<void> choose_operations();
  Result<std::unique_ptr<ForwardGraph>> build(const Shape& shape);
  Result<ForwardGraph*> graph_for(const Shape& shape);
  void set_inputs(const ForwardGraph& graph, std::span<const StepSequence> sequences);

  const Model& model_;
  Backend& backend_;
  ForwardOptions options_;
  StepData step_;
  PoolLayout pool_;
  std::unique_ptr<GraphOperations> operations_;
  std::unique_ptr<ggml_gallocr, FreeAllocator> allocator_;
  std::list<CachedGraph> graphs_;  // most recently used first
  ForwardGraph* current_ = nullptr;
  std::vector<std::int32_t> tokens_;
  std::vector<std::int32_t> positions_;
  std::vector<std::int32_t> outputs_;
};

}  // namespace molly::engine
