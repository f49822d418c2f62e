#include "training/graph/training_graph.h"

#include <ggml-backend.h>
#include <ggml.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "training/graph/arena.h"

namespace molly::training {
namespace {

constexpr std::size_t nodes_per_layer = 512;

engine::Context describe_graphs(std::size_t nodes) {
  const std::size_t bytes = 2 * nodes * ggml_tensor_overhead() + 3 * ggml_graph_overhead_custom(nodes, true);
  return engine::Context(ggml_init({.mem_size = bytes, .mem_buffer = nullptr, .no_alloc = true}));
}

}  // namespace

struct TrainingGraph::State {
  BatchShape shape;
  std::size_t nodes = 0;
  engine::Context inputs_context;
  engine::Buffer inputs_buffer;
  engine::Context context;
  Scheduler scheduler;
  ggml_cgraph* graph = nullptr;
  DecoderInputs inputs;
  std::vector<ggml_tensor*> observed;  // hinted layers, then the hidden state
  std::vector<ggml_tensor*> seeds;     // d loss / d observed
  const Loss* loss = nullptr;          // of the run in progress

  Result<void> describe_inputs(const Device& device, const Decoder& decoder, std::size_t hints);
  void describe_graph(const Decoder& decoder, const GraphOptions& options, std::span<ggml_tensor* const> parameters,
                      std::span<ggml_tensor* const> gradients);
  void differentiate(ggml_cgraph* forward, Rewrite rewrite, std::span<ggml_tensor* const> parameters,
                     std::span<ggml_tensor* const> gradients);
  void fill(const Batch& batch);
  void fill_mask(const Batch& batch);
  void ask_loss();
};

Result<void> TrainingGraph::State::describe_inputs(const Device& device, const Decoder& decoder, std::size_t hints) {
  inputs_context = engine::describe_tensors(8 + hints);
  ggml_context* described = inputs_context.get();
  const std::int64_t tokens = shape.tokens();
  inputs.tokens = ggml_new_tensor_1d(described, GGML_TYPE_I32, tokens);
  inputs.positions = ggml_new_tensor_1d(described, GGML_TYPE_I32, tokens);
  inputs.mask = ggml_new_tensor_4d(described, GGML_TYPE_F32, shape.row_tokens, shape.row_tokens, 1, shape.rows);
  for (std::size_t i = 0; i <= hints; ++i) {
    seeds.push_back(ggml_new_tensor_2d(described, GGML_TYPE_F32, decoder.config.n_embd, tokens));
  }
  inputs_buffer.reset(ggml_backend_alloc_ctx_tensors_from_buft(described, device.buffer_type()));
  if (!inputs_buffer) return failure(ErrorCode::overloaded, "no memory for the inputs of training");
  return {};
}

void TrainingGraph::State::describe_graph(const Decoder& decoder, const GraphOptions& options,
                                          std::span<ggml_tensor* const> parameters,
                                          std::span<ggml_tensor* const> gradients) {
  const DecoderOutputs outputs = build_decoder(context.get(), decoder, inputs, shape);
  for (const std::uint32_t layer : options.hinted_layers) observed.push_back(outputs.layers.at(layer));
  observed.push_back(outputs.hidden);
  for (ggml_tensor* state : observed) ggml_set_output(state);
  ggml_cgraph* forward = ggml_new_graph_custom(context.get(), nodes, true);
  ggml_build_forward_expand(forward, outputs.hidden);
  if (parameters.empty()) {
    graph = forward;
  } else {
    differentiate(forward, options.rewrite, parameters, gradients);
  }
}

void TrainingGraph::State::differentiate(ggml_cgraph* forward, Rewrite rewrite,
                                         std::span<ggml_tensor* const> parameters,
                                         std::span<ggml_tensor* const> gradients) {
  std::vector<ggml_tensor*> accumulators(static_cast<std::size_t>(ggml_graph_n_nodes(forward)));
  for (std::size_t i = 0; i < accumulators.size(); ++i) {
    ggml_tensor* node = ggml_graph_node(forward, static_cast<int>(i));
    if (const auto at = std::ranges::find(parameters, node); at != parameters.end()) {
      accumulators[i] = gradients[static_cast<std::size_t>(at - parameters.begin())];
    } else if (const auto state = std::ranges::find(observed, node); state != observed.end()) {
      // ggml_set_loss() wants one number; a state whose gradient is given is the same to the backward pass.
      node->flags |= GGML_TENSOR_FLAG_LOSS;
      accumulators[i] = seeds[static_cast<std::size_t>(state - observed.begin())];
    }
  }
  ggml_build_backward_expand(context.get(), forward, accumulators.data());
  if (rewrite == Rewrite::products) rewrite_products(context.get(), forward);
  // Collected anew: the forward pass, then what the gradients need.
  graph = ggml_new_graph_custom(context.get(), nodes, false);
  ggml_build_forward_expand(graph, observed.back());
  for (ggml_tensor* parameter : parameters) {
    if (ggml_tensor* gradient = ggml_graph_get_grad(forward, parameter)) ggml_build_forward_expand(graph, gradient);
  }
}

void TrainingGraph::State::fill_mask(const Batch& batch) {
  constexpr float hidden = -std::numeric_limits<float>::infinity();
  const std::uint32_t length = shape.row_tokens;
  float* out = static_cast<float*>(inputs.mask->data);
  for (std::uint32_t row = 0; row < shape.rows; ++row) {
    const std::int32_t* segments = batch.segments.data() + std::size_t{row} * length;
    for (std::uint32_t query = 0; query < length; ++query) {
      for (std::uint32_t key = 0; key < length; ++key) {
        *out++ = key <= query && segments[key] == segments[query] ? 0 : hidden;
      }
    }
  }
}

void TrainingGraph::State::fill(const Batch& batch) {
  assert(batch.tokens.size() == shape.tokens() && batch.positions.size() == shape.tokens() &&
         batch.segments.size() == shape.tokens());
  std::ranges::copy(batch.tokens, static_cast<std::int32_t*>(inputs.tokens->data));
  std::ranges::copy(batch.positions, static_cast<std::int32_t*>(inputs.positions->data));
  fill_mask(batch);
  for (ggml_tensor* seed : seeds) std::ranges::fill(numbers_of(seed), 0.0F);
}

void TrainingGraph::State::ask_loss() {
  States states{.hidden = numbers_of(observed.back()),
                .hidden_gradient = numbers_of(seeds.back()),
                .hints = {},
                .hint_gradients = {}};
  for (std::size_t i = 0; i + 1 < observed.size(); ++i) {
    states.hints.push_back(numbers_of(observed[i]));
    states.hint_gradients.push_back(numbers_of(seeds[i]));
  }
  (*loss)(states);
}

TrainingGraph::TrainingGraph(std::unique_ptr<State> state) : state_(std::move(state)) {}
TrainingGraph::~TrainingGraph() = default;

Result<std::unique_ptr<TrainingGraph>> TrainingGraph::build(const Device& device, const Decoder& decoder,
                                                            const GraphOptions& options,
                                                            std::span<ggml_tensor* const> parameters,
                                                            std::span<ggml_tensor* const> gradients) {
  assert(parameters.size() == gradients.size());
  auto state = std::make_unique<State>();
  state->shape = options.shape;
  state->nodes = nodes_per_layer * (decoder.layers.size() + 2);
  if (auto done = state->describe_inputs(device, decoder, options.hinted_layers.size()); !done) {
    return std::unexpected(done.error());
  }
  state->context = describe_graphs(state->nodes);
  state->describe_graph(decoder, options, parameters, gradients);
  state->scheduler.reset(device.scheduler(state->nodes));
  if (!state->scheduler || !ggml_backend_sched_alloc_graph(state->scheduler.get(), state->graph)) {
    return failure(ErrorCode::overloaded,
                   "no memory for the activations of training: fewer tokens in a batch need less");
  }
  ggml_backend_sched_set_eval_callback(
      state->scheduler.get(),
      [](ggml_tensor* node, bool ask, void* data) {
        auto* self = static_cast<State*>(data);
        const bool is_hidden = node == self->observed.back();
        if (!ask && is_hidden) self->ask_loss();
        return ask ? is_hidden : true;
      },
      state.get());
  return std::unique_ptr<TrainingGraph>(new TrainingGraph(std::move(state)));
}

Result<void> TrainingGraph::run(const Batch& batch, const Loss& loss) {
  state_->fill(batch);
  state_->loss = &loss;
  if (ggml_backend_sched_graph_compute(state_->scheduler.get(), state_->graph) == GGML_STATUS_SUCCESS) return {};
  return failure(ErrorCode::internal, "a training step failed in ggml");
}

const BatchShape& TrainingGraph::shape() const { return state_->shape; }

std::uint64_t TrainingGraph::bytes() const {
  std::uint64_t bytes = ggml_backend_buffer_get_size(state_->inputs_buffer.get());
  for (int i = 0; i < ggml_backend_sched_get_n_backends(state_->scheduler.get()); ++i) {
    bytes += ggml_backend_sched_get_buffer_size(state_->scheduler.get(),
                                                ggml_backend_sched_get_backend(state_->scheduler.get(), i));
  }
  return bytes;
}

int TrainingGraph::count(ggml_op op) const {
  int out = 0;
  for (int i = 0; i < ggml_graph_n_nodes(state_->graph); ++i) out += ggml_graph_node(state_->graph, i)->op == op;
  return out;
}

}  // namespace molly::training
