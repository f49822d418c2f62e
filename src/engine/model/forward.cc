#include "engine/model/forward.h"

#include <sys/mman.h>

#include <cstring>

#include "engine/model/own_kernels.h"
#include "engine/model/stock_operations.h"

namespace molly::engine {
namespace {

constexpr std::size_t cached_graphs = 12;
constexpr std::size_t page_alignment = 64;

std::size_t kv_row_bytes(const ModelConfig& config, KvType type) {
  return row_bytes(type == KvType::f16 ? FactorType::f16 : FactorType::q8_0, config.kv_width());
}

std::size_t aligned(std::size_t bytes) { return (bytes + page_alignment - 1) / page_alignment * page_alignment; }

// Keys, or values, of one layer in one page.
std::size_t chunk_bytes(const ModelConfig& config, std::uint32_t page_tokens, KvType type) {
  return aligned(kv_row_bytes(config, type) * page_tokens);
}

void set_input(ggml_tensor* tensor, const std::vector<std::int32_t>& values) {
  ggml_backend_tensor_set(tensor, values.data(), 0, values.size() * sizeof(std::int32_t));
}

}  // namespace

std::size_t page_bytes(const ModelConfig& config, std::uint32_t page_tokens, KvType type) {
  return std::size_t{2} * config.n_layer * chunk_bytes(config, page_tokens, type);
}

Forward::Forward(const Model& model, Backend& backend, const ForwardOptions& options)
    : model_(model), backend_(backend), options_(options), step_(model.config(), model.weights()) {}

Result<std::unique_ptr<Forward>> Forward::create(const Model& model, Backend& backend, const ForwardOptions& options) {
  std::unique_ptr<Forward> out(new Forward(model, backend, options));
  if (auto pool = out->reserve_pool(); !pool) return std::unexpected(pool.error());
  if (auto chosen = out->choose_operations(); !chosen) return std::unexpected(chosen.error());
  if (auto reserved = out->reserve_activations(); !reserved) return std::unexpected(reserved.error());
  return out;
}

Forward::~Forward() {
  if (pool_.base != nullptr) ::munmap(pool_.base, pool_.bytes());
}

// Mapped, so that pages which were never used take no memory.
Result<void> Forward::reserve_pool() {
  const ModelConfig& config = model_.config();
  pool_ = {.page_bytes = page_bytes(config, options_.page_tokens, options_.kv_type),
           .chunk_bytes = chunk_bytes(config, options_.page_tokens, options_.kv_type),
           .row_bytes = kv_row_bytes(config, options_.kv_type),
           .pages = options_.pages,
           .page_tokens = options_.page_tokens,
           .type = options_.kv_type};
  if (options_.pages == 0) return failure(ErrorCode::invalid_request, "the page pool needs at least one page");
  void* memory =
      ::mmap(nullptr, pool_.bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return failure(ErrorCode::overloaded,
                   "there is no memory for a pool of " + std::to_string(pool_.bytes() >> 20) + " MiB");
  }
  ::madvise(memory, pool_.bytes(), MADV_HUGEPAGE);
  pool_.base = static_cast<std::byte*>(memory);
  return {};
}

Result<void> Forward::choose_operations() {
  if (options_.make_operations) {
    operations_ = options_.make_operations(model_.config(), backend_, step_, pool_);
    return {};
  }
  if (options_.operations == OperationSet::own_kernels) {
    operations_ = std::make_unique<OwnKernels>(model_.config(), step_, pool_, options_.isa);
    return {};
  }
  if (pool_.page_bytes % pool_.row_bytes != 0) {
    return failure(ErrorCode::invalid_request,
                   "ggml's own operations need pages of whole rows: take pages of 64 tokens");
  }
  const ggml_type kept = options_.operations == OperationSet::stock ? GGML_TYPE_F16 : GGML_TYPE_F32;
  operations_ = std::make_unique<StockOperations>(model_.config(), backend_, step_, pool_, kept);
  return {};
}

Result<std::unique_ptr<ForwardGraph>> Forward::build(const Shape& shape) {
  auto graph =
      std::make_unique<ForwardGraph>(model_.config(), model_.weights(), *operations_, shape.rows, shape.adapters);
  if (auto begun = operations_->begin(*graph); !begun) return std::unexpected(std::move(begun.error()));
  graph->finish(model_.architecture().layers(*graph, graph->embed()), shape.outputs);
  return graph;
}

Result<void> Forward::reserve_activations() {
  allocator_.reset(ggml_gallocr_new(backend_.plain()));
  if (!operations_->graphs_last()) return {};
  const auto largest = build({options_.max_rows, options_.max_rows, true});
  if (!largest) return std::unexpected(largest.error());
  if (ggml_gallocr_reserve(allocator_.get(), (*largest)->graph())) return {};
  return failure(ErrorCode::overloaded, "there is no memory for the activations of a forward pass");
}

std::uint64_t Forward::compute_bytes() const { return ggml_gallocr_get_buffer_size(allocator_.get(), 0); }

Result<ForwardGraph*> Forward::graph_for(const Shape& shape) {
  if (!operations_->graphs_last()) graphs_.clear();
  for (auto cached = graphs_.begin(); cached != graphs_.end(); ++cached) {
    if (cached->shape != shape) continue;
    graphs_.splice(graphs_.begin(), graphs_, cached);
    return graphs_.front().graph.get();
  }
  auto graph = build(shape);
  if (!graph) return std::unexpected(graph.error());
  const std::size_t before = ggml_gallocr_get_buffer_size(allocator_.get(), 0);
  if (!ggml_gallocr_alloc_graph(allocator_.get(), (*graph)->graph())) {
    return failure(ErrorCode::overloaded, "there is no memory for the activations of a forward pass");
  }
  // All graphs lie in one buffer; when it moved, the addresses in the older ones are stale.
  if (ggml_gallocr_get_buffer_size(allocator_.get(), 0) != before) graphs_.clear();
  graphs_.push_front({shape, *std::move(graph)});
  if (graphs_.size() > cached_graphs) graphs_.pop_back();
  return graphs_.front().graph.get();
}

void Forward::set_inputs(const ForwardGraph& graph, std::span<const StepSequence> sequences) {
  tokens_.clear();
  positions_.clear();
  for (const StepSequence& sequence : sequences) {
    tokens_.insert(tokens_.end(), sequence.tokens.begin(), sequence.tokens.end());
    for (std::uint32_t i = 0; i < sequence.tokens.size(); ++i) {
      positions_.push_back(static_cast<std::int32_t>(sequence.first_position + i));
    }
  }
  set_input(graph.inputs().tokens, tokens_);
  set_input(graph.inputs().positions, positions_);
  if (graph.inputs().outputs != nullptr) set_input(graph.inputs().outputs, outputs_);
  operations_->set_inputs();
}

Result<void> Forward::run(std::span<const StepSequence> sequences) {
  outputs_.clear();
  std::int32_t row = 0;
  for (const StepSequence& sequence : sequences) {
    const auto rows = static_cast<std::int32_t>(sequence.tokens.size());
    const std::int32_t first = sequence.wanted == Wanted::all    ? row
                               : sequence.wanted == Wanted::last ? row + rows - 1
                                                                 : row + rows;
    for (std::int32_t wanted = first; wanted < row + rows; ++wanted) outputs_.push_back(wanted);
    row += rows;
  }
  if (row == 0) return {};
  // A graph computes something: where nothing is wanted, one row is.
  if (outputs_.empty()) outputs_.push_back(row - 1);
  step_.fill(sequences);
  auto graph =
      graph_for({static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(outputs_.size()), step_.has_adapters()});
  if (!graph) return std::unexpected(graph.error());
  current_ = *graph;
  set_inputs(*current_, sequences);
  return backend_.compute(current_->graph());
}

std::span<float> Forward::logits(std::uint32_t output) {
  const ggml_tensor* tensor = current_->logits();
  const auto width = static_cast<std::size_t>(tensor->ne[0]);
  return {static_cast<float*>(tensor->data) + output * width, width};
}

std::span<const float> Forward::hidden(std::uint32_t output) {
  const ggml_tensor* tensor = current_->hidden();
  const auto width = static_cast<std::size_t>(tensor->ne[0]);
  return {static_cast<const float*>(tensor->data) + output * width, width};
}

void Forward::copy_page(PageId from, PageId to) { std::memcpy(page_address(to), page_address(from), pool_.page_bytes); }

}  // namespace molly::engine
