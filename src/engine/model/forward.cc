#include "engine/model/forward.h"

#include <sys/mman.h>

#include <cmath>
#include <cstring>

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
  out->name_operations();
  if (auto reserved = out->reserve_activations(); !reserved) return std::unexpected(reserved.error());
  return out;
}

Forward::~Forward() {
  if (pool_ != nullptr) ::munmap(pool_, page_bytes_ * options_.pages);
}

// Mapped, so that pages which were never used take no memory.
Result<void> Forward::reserve_pool() {
  page_bytes_ = page_bytes(model_.config(), options_.page_tokens, options_.kv_type);
  const std::size_t bytes = page_bytes_ * options_.pages;
  if (options_.pages == 0) return failure(ErrorCode::invalid_request, "the page pool needs at least one page");
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return failure(ErrorCode::overloaded, "there is no memory for a pool of " + std::to_string(bytes >> 20) + " MiB");
  }
  ::madvise(memory, bytes, MADV_HUGEPAGE);
  pool_ = static_cast<std::byte*>(memory);
  return {};
}

void Forward::name_operations() {
  const ModelConfig& config = model_.config();
  const std::size_t chunk = chunk_bytes(config, options_.page_tokens, options_.kv_type);
  for (std::uint32_t layer = 0; layer < config.n_layer; ++layer) {
    PagedKv pages{.base = pool_,
                  .page_stride = page_bytes_,
                  .key_offset = std::size_t{2} * layer * chunk,
                  .value_offset = (std::size_t{2} * layer + 1) * chunk,
                  .row_bytes = kv_row_bytes(config, options_.kv_type),
                  .page_tokens = options_.page_tokens,
                  .type = options_.kv_type,
                  .n_head_kv = config.n_head_kv,
                  .head_dim = config.head_dim};
    operations_.attentions.push_back(
        {&step_, pages, config.n_head, 1 / std::sqrt(static_cast<float>(config.head_dim)), options_.isa});
  }
  for (std::size_t linear = 0; linear < step_.linears(); ++linear) {
    operations_.loras.push_back({&step_, linear, options_.isa});
  }
}

std::unique_ptr<ForwardGraph> Forward::build(const Shape& shape) {
  auto graph =
      std::make_unique<ForwardGraph>(model_.config(), model_.weights(), step_, operations_, shape.rows, shape.adapters);
  graph->finish(model_.architecture().layers(*graph, graph->embed()), shape.outputs);
  return graph;
}

Result<void> Forward::reserve_activations() {
  allocator_.reset(ggml_gallocr_new(backend_.plain()));
  const auto largest = build({options_.max_rows, options_.max_rows, true});
  if (ggml_gallocr_reserve(allocator_.get(), largest->graph())) return {};
  return failure(ErrorCode::overloaded, "there is no memory for the activations of a forward pass");
}

std::uint64_t Forward::compute_bytes() const { return ggml_gallocr_get_buffer_size(allocator_.get(), 0); }

Result<ForwardGraph*> Forward::graph_for(const Shape& shape) {
  for (auto cached = graphs_.begin(); cached != graphs_.end(); ++cached) {
    if (cached->shape != shape) continue;
    graphs_.splice(graphs_.begin(), graphs_, cached);
    return graphs_.front().graph.get();
  }
  auto graph = build(shape);
  const std::size_t before = ggml_gallocr_get_buffer_size(allocator_.get(), 0);
  if (!ggml_gallocr_alloc_graph(allocator_.get(), graph->graph())) {
    return failure(ErrorCode::overloaded, "there is no memory for the activations of a forward pass");
  }
  // All graphs lie in one buffer; when it moved, the addresses in the older ones are stale.
  if (ggml_gallocr_get_buffer_size(allocator_.get(), 0) != before) graphs_.clear();
  graphs_.push_front({shape, std::move(graph)});
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

void Forward::copy_page(PageId from, PageId to) { std::memcpy(page_address(to), page_address(from), page_bytes_); }

}  // namespace molly::engine
