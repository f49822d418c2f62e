#include "sizing/engine_plan.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "base/text.h"
#include "sizing/engine_fit.h"
#include "sizing/model_shape.h"
#include "sizing/saturating.h"

namespace molly::sizing {
namespace {

constexpr std::uint32_t shortest_context = 256;     // tokens: below that nothing can be asked
constexpr std::uint32_t usual_adapters = 8;         // resident ones, where memory allows
constexpr std::uint64_t usual_warm = 256ULL << 20;  // bytes, where memory allows
constexpr std::uint64_t usual_warm_adapters = 4;    // or so many, where that is more
constexpr std::uint32_t parallel_of_given_pool = 32;

std::string shortage(const EnginePlan& plan, std::uint64_t budget) {
  const auto size = base::human_size;
  return "it needs " + size(plan.memory_bytes()) + " (weights " + size(plan.weights.total()) + ", computing " +
         size(plan.compute_bytes) + ", pages " + size(plan.pool_bytes()) + ", warm adapters " + size(plan.warm_bytes) +
         ") and may take " + size(budget) + ": " + size(plan.missing_bytes) + " are missing";
}

class Planner {
 public:
  Planner(const Device& device, const gguf::ModelFile& model, const ModelShape& shape, const EngineWishes& wishes)
      : shape_(shape),
        wishes_(wishes),
        budget_(wishes.memory_bytes > 0 ? wishes.memory_bytes : memory_for_models(device)),
        trained_(static_cast<std::uint32_t>(shape.trained_context)) {
    plan_.threads = wishes.threads > 0 ? wishes.threads : device.cores;
    plan_.page_tokens = wishes.page_tokens;
    plan_.adapter_rank = wishes.adapter_rank;
    plan_.weights = weight_bytes(model, device);
    plan_.compute_bytes = compute_bytes(shape);
  }

  EnginePlan plan() {
    if (wishes_.pool_bytes) {
      take_given_pool(*wishes_.pool_bytes);
    } else {
      choose_context();
      add_adapters();
      add_warm();
    }
    const std::uint32_t asked = wishes_.context > 0 ? wishes_.context : std::min(useful_context, trained_);
    plan_.useful_context = plan_.context >= asked;
    plan_.missing_bytes = minus(plan_.memory_bytes(), budget_);
    if (plan_.missing_bytes > 0) plan_.problem = shortage(plan_, budget_);
    return std::move(plan_);
  }

 private:
  std::uint32_t wanted_context() const {
    return wishes_.context > 0 ? wishes_.context : std::min(usual_context, trained_);
  }

  void use_kv_type(NumberType type) {
    plan_.kv_type = type;
    plan_.page_bytes = page_bytes(shape_, wishes_.page_tokens, type);
    adapter_pages_ = adapter_pages(shape_, wishes_.adapter_rank, wishes_.adapter_type, plan_.page_bytes);
    plan_.adapter_bytes = times(adapter_pages_, plan_.page_bytes);
    plan_.resident_adapters = adapter_pages_ > 0 ? 1 : 0;
    plan_.warm_bytes = wishes_.warm_bytes.value_or(plan_.adapter_bytes);
  }

  std::uint64_t pages_for_requests() const {
    return times(plan_.parallel, divided_up(plan_.context, plan_.page_tokens));
  }

  void use(std::uint32_t context, std::uint32_t parallel) {
    plan_.context = context;
    plan_.parallel = parallel;
    plan_.pages = plus(pages_for_requests(), times(plan_.resident_adapters, adapter_pages_));
  }

  std::uint64_t left() const { return minus(budget_, plan_.memory_bytes()); }

  // The longest context, up to what is wanted, for so many requests beside one adapter.
  std::uint32_t longest_context(std::uint32_t parallel) {
    use(0, parallel);
    const std::uint64_t pages = plan_.memory_bytes() > budget_ ? 0 : left() / plan_.page_bytes / parallel;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted_context(), times(pages, plan_.page_tokens)));
  }

  bool try_requests(std::uint32_t parallel, std::uint32_t least) {
    const std::uint32_t context = longest_context(parallel);
    if (context < least) return false;
    use(context, parallel);
    return true;
  }

  bool try_kv_type(NumberType type, std::uint32_t least) {
    use_kv_type(type);
    if (wishes_.parallel > 0) return try_requests(wishes_.parallel, least);
    for (std::uint32_t parallel = std::max(1U, wishes_.most_parallel); parallel > 0; parallel /= 2) {
      if (try_requests(parallel, least)) return true;
    }
    return false;
  }

  void choose_context() {
    const std::uint32_t least = wishes_.context > 0 ? wishes_.context : std::min(useful_context, trained_);
    const std::array both{NumberType::f16, NumberType::q8_0};
    const auto types = wishes_.kv_type ? std::span(&*wishes_.kv_type, 1) : std::span(both);
    for (const NumberType type : types) {
      if (try_kv_type(type, least)) return;
    }
    use_kv_type(types.back());
    const std::uint32_t parallel = std::max(1U, wishes_.parallel);
    const std::uint32_t shortest = wishes_.context > 0 ? wishes_.context : std::min(shortest_context, trained_);
    use(std::max(longest_context(parallel), shortest), parallel);
  }

  void add_adapters() {
    if (adapter_pages_ == 0) return;
    const std::uint64_t more = std::min<std::uint64_t>(usual_adapters - 1, left() / plan_.adapter_bytes);
    plan_.resident_adapters += static_cast<std::uint32_t>(more);
    plan_.pages = plus(plan_.pages, times(more, adapter_pages_));
  }

  // Where no adapter fits into a page there is none to keep.
  std::uint64_t usual_warm_bytes() const {
    return adapter_pages_ == 0 ? 0 : std::max(usual_warm, times(usual_warm_adapters, plan_.adapter_bytes));
  }

  void add_warm() {
    if (wishes_.warm_bytes) return;
    plan_.warm_bytes += std::min(left(), minus(usual_warm_bytes(), plan_.warm_bytes));
  }

  void take_given_pool(std::uint64_t pool) {
    use_kv_type(wishes_.kv_type.value_or(NumberType::f16));
    plan_.pages = pool / plan_.page_bytes;
    const std::uint64_t tokens = times(plan_.pages, plan_.page_tokens);
    plan_.context = wishes_.context > 0
                        ? wishes_.context
                        : static_cast<std::uint32_t>(std::clamp<std::uint64_t>(tokens, 1, wanted_context()));
    plan_.parallel = wishes_.parallel > 0 ? wishes_.parallel : parallel_of_given_pool;
    const std::uint64_t others = minus(plan_.pages, pages_for_requests());
    plan_.resident_adapters =
        adapter_pages_ > 0 ? static_cast<std::uint32_t>(std::min<std::uint64_t>(others / adapter_pages_, 1U << 20)) : 0;
    plan_.warm_bytes = wishes_.warm_bytes.value_or(usual_warm_bytes());
  }

  const ModelShape& shape_;
  const EngineWishes& wishes_;
  const std::uint64_t budget_;
  const std::uint32_t trained_;
  EnginePlan plan_;
  std::uint64_t adapter_pages_ = 0;  // of one adapter
};

}  // namespace

std::uint64_t EnginePlan::pool_bytes() const { return times(pages, page_bytes); }

std::uint64_t EnginePlan::memory_bytes() const {
  return plus(plus(weights.total(), compute_bytes), plus(pool_bytes(), warm_bytes));
}

EnginePlan plan_engine(const Device& device, const gguf::ModelFile& model, const EngineWishes& wishes) {
  const auto shape = read_shape(model);
  EnginePlan out;
  if (shape) out = Planner(device, model, *shape, wishes).plan();
  auto unfit = unfit_for_engine(model);
  if (!unfit && !shape) unfit = shape.error();
  if (unfit) out.problem = "molly-engine cannot serve it: " + *unfit;
  return out;
}

double bits_per_weight(const gguf::ModelFile& model) {
  if (model.parameters == 0) return 0;
  return 8 * static_cast<double>(model.tensor_bytes) / static_cast<double>(model.parameters);
}

std::optional<std::size_t> recommend(std::span<const Candidate> candidates) {
  constexpr double coarse_bits = 4;
  const auto rank = [](const Candidate& one) {
    return std::tuple(one.useful, one.bits_per_weight >= coarse_bits, one.parameters, one.bits_per_weight);
  };
  const auto best = std::ranges::max_element(candidates, {}, rank);
  if (best == candidates.end() || !best->useful) return std::nullopt;
  return static_cast<std::size_t>(best - candidates.begin());
}

}  // namespace molly::sizing
