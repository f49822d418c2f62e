#include "training/learner.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "training/graph/training_graph.h"
#include "training/loss/output_head.h"

namespace molly::training {
namespace {

std::size_t counted_tokens(std::span<const PackedRow* const> rows) {
  std::size_t out = 0;
  for (const PackedRow* row : rows) out += row->counted();
  return out;
}

// One thread's share of a step: rows one after another through its own graphs, gradients into its own arena.
class Worker {
 public:
  static Result<std::unique_ptr<Worker>> make(const Decoder& decoder, std::span<const TensorShape> shapes,
                                              std::span<ggml_tensor* const> parameters, std::uint32_t row_tokens) {
    std::unique_ptr<Worker> out(new Worker(decoder.output));
    auto device = Device::open();
    if (!device) return std::unexpected(device.error());
    out->device_ = *std::move(device);
    auto gradients = Arena::make(shapes, out->device_->buffer_type());
    if (!gradients) return std::unexpected(gradients.error());
    out->gradients_ = *std::move(gradients);
    auto graph = TrainingGraph::build(*out->device_, decoder, {.shape = {.rows = 1, .row_tokens = row_tokens}},
                                      parameters, out->gradients_.tensors());
    if (!graph) return std::unexpected(graph.error());
    out->graph_ = *std::move(graph);
    return out;
  }

  void begin() {
    gradients_.clear();
    sum_ = 0;
    failed_.reset();
  }

  // Adds the row's loss, each token's times `weight`, and its gradients.
  void learn(const PackedRow& row, double weight) {
    run(row, [&](const States& states, std::span<const std::uint32_t> counted) {
      sum_ += head_.backward(states.hidden, counted, states.hidden_gradient,
                             [&](std::size_t index, std::span<float> logits) {
                               return cross_entropy(logits, row.targets[counted[index]], weight);
                             });
    });
  }

  const Arena& gradients() const { return gradients_; }
  double sum() const { return sum_; }
  const std::optional<Error>& failed() const { return failed_; }
  std::uint64_t bytes() const { return graph_->bytes() + head_.bytes() + gradients_.numbers().size_bytes(); }

 private:
  explicit Worker(ggml_tensor* output) : head_(output) {}

  template <class OnStates>
  void run(const PackedRow& row, const OnStates& on_states) {
    if (failed_) return;
    std::vector<std::uint32_t> counted;
    for (std::uint32_t i = 0; i < row.counts.size(); ++i) {
      if (row.counts[i] != 0) counted.push_back(i);
    }
    const Batch batch{.tokens = row.tokens, .positions = row.positions, .segments = row.segments};
    const auto done = graph_->run(batch, [&](const States& states) { on_states(states, counted); });
    if (!done) failed_ = done.error();
  }

  std::unique_ptr<Device> device_;
  Arena gradients_;
  std::unique_ptr<TrainingGraph> graph_;
  OutputHead head_;
  double sum_ = 0;
  std::optional<Error> failed_;
};

}  // namespace

struct Learner::State {
  LearnerOptions options;
  Arena factors;
  Decoder decoder;
  std::vector<std::unique_ptr<Worker>> workers;
  std::optional<AdamW> optimizer;

  // Row i is the business of worker i modulo their number.
  Result<double> learn(std::span<const PackedRow* const> rows, double weight);
};

Result<double> Learner::State::learn(std::span<const PackedRow* const> rows, double weight) {
  const auto share = [&](std::size_t which) {
    workers[which]->begin();
    for (std::size_t i = which; i < rows.size(); i += workers.size()) workers[which]->learn(*rows[i], weight);
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t which = 1; which < workers.size(); ++which) threads.emplace_back(share, which);
    share(0);
  }
  double sum = 0;
  for (const auto& worker : workers) {
    if (worker->failed()) return std::unexpected(*worker->failed());
    sum += worker->sum();
  }
  return sum;
}

Learner::Learner(std::unique_ptr<State> state) : state_(std::move(state)) {}
Learner::~Learner() = default;

Result<std::unique_ptr<Learner>> Learner::make(const BaseModel& base, const LearnerOptions& options) {
  auto state = std::make_unique<State>();
  state->options = options;
  const auto device = Device::open();
  if (!device) return std::unexpected(device.error());
  const std::vector<TensorShape> shapes = lora_shapes(base.decoder(), options.factors);
  auto factors = Arena::make(shapes, (*device)->buffer_type());
  if (!factors) return std::unexpected(factors.error());
  state->factors = *std::move(factors);
  state->decoder = with_lora(base.decoder(), options.factors, state->factors);
  for (std::uint32_t i = 0; i < std::max(1U, options.workers); ++i) {
    auto worker = Worker::make(state->decoder, shapes, state->factors.tensors(), options.row_tokens);
    if (!worker) return std::unexpected(worker.error());
    state->workers.push_back(*std::move(worker));
  }
  state->optimizer.emplace(options.optimizer, state->factors.numbers().size());
  return std::unique_ptr<Learner>(new Learner(std::move(state)));
}

Result<StepResult> Learner::step(std::span<const PackedRow* const> rows, double rate) {
  const std::size_t counted = counted_tokens(rows);
  if (counted == 0) return failure(ErrorCode::invalid_request, "no token of these rows is to be predicted");
  const auto loss = state_->learn(rows, 1 / static_cast<double>(counted));
  if (!loss) return std::unexpected(loss.error());
  const std::span<float> total = state_->workers.front()->gradients().numbers();
  for (std::size_t which = 1; which < state_->workers.size(); ++which) {
    const std::span<float> more = state_->workers[which]->gradients().numbers();
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += more[i];
  }
  const double norm = clip_norm(total, state_->options.clip_norm);
  state_->optimizer->step(state_->factors.numbers(), total, rate);
  return StepResult{.loss = *loss, .gradient_norm = norm, .counted = counted};
}

Result<double> Learner::loss(std::span<const PackedRow* const> rows) {
  const std::size_t counted = counted_tokens(rows);
  if (counted == 0) return failure(ErrorCode::invalid_request, "no token of these rows is to be predicted");
  return state_->learn(rows, 1 / static_cast<double>(counted));
}

const Arena& Learner::factors() const { return state_->factors; }
AdamW& Learner::optimizer() { return *state_->optimizer; }

std::uint64_t Learner::bytes() const {
  std::uint64_t out = 3 * state_->factors.numbers().size_bytes();  // with the optimizer's moments
  for (const auto& worker : state_->workers) out += worker->bytes();
  return out;
}

}  // namespace molly::training
