#include "engine/model/adapter_stacks.h"

#include <algorithm>
#include <ranges>

#include "engine/adapters/number_format.h"
#include "engine/kernels/half.h"

namespace molly::engine {
namespace {

constexpr std::size_t tensors_for_each_linear = 2 * projection_count;

std::int64_t largest_rank(const LoraLinear& linear, std::size_t segment) {
  std::int64_t largest = 1;
  for (std::size_t i = segment; i < linear.factors.size(); i += linear.segments.size()) {
    largest = std::max<std::int64_t>(largest, linear.factors[i].rank());
  }
  return largest;
}

std::vector<std::uint16_t> halves(FactorType type, const std::byte* row, std::size_t count) {
  const NumberFormat format = type == FactorType::q8_0 ? NumberFormat::q8_0 : NumberFormat::f16;
  std::vector<float> numbers(count);
  decode(format, {reinterpret_cast<const std::uint8_t*>(row), encoded_bytes(format, count)}, numbers);
  std::vector<std::uint16_t> out(count);
  std::ranges::transform(numbers, out.begin(), float_to_half);
  return out;
}

// Half precision numbers of one stack, slot after slot.
class SlotWriter {
 public:
  explicit SlotWriter(const AdapterStacks::Stack& stack)
      : rank_(static_cast<std::size_t>(stack.a->ne[1])),
        n_in_(static_cast<std::size_t>(stack.a->ne[0])),
        n_out_(static_cast<std::size_t>(stack.b->ne[1])),
        a_(ggml_nelements(stack.a)),
        b_(ggml_nelements(stack.b)) {}

  void write(std::size_t slot, const LoraFactors& factors) {
    for (std::size_t r = 0; r < factors.rank(); ++r) {
      std::ranges::copy(halves(factors.type, factors.a[r], n_in_), &a_[(slot * rank_ + r) * n_in_]);
      const auto column = halves(factors.type, factors.b[r], n_out_);
      for (std::size_t i = 0; i < n_out_; ++i) b_[(slot * n_out_ + i) * rank_ + r] = column[i];
    }
  }

  void store(const AdapterStacks::Stack& stack) const {
    ggml_backend_tensor_set(stack.a, a_.data(), 0, ggml_nbytes(stack.a));
    ggml_backend_tensor_set(stack.b, b_.data(), 0, ggml_nbytes(stack.b));
  }

 private:
  std::size_t rank_;
  std::size_t n_in_;
  std::size_t n_out_;
  std::vector<std::uint16_t> a_;
  std::vector<std::uint16_t> b_;
};

}  // namespace

void AdapterStacks::describe(const StepData& step) {
  const auto slots = static_cast<std::int64_t>(adapters_.size() + 1);
  buffer_.reset();
  context_ = describe_tensors(tensors_for_each_linear * step.linears());
  stacks_.assign(step.linears(), {});
  for (std::size_t linear = 0; linear < step.linears(); ++linear) {
    const LoraLinear data = step.lora(linear);
    for (std::size_t segment = 0; segment < data.segments.size(); ++segment) {
      const std::int64_t rank = largest_rank(data, segment);
      stacks_[linear].push_back(
          {.a = ggml_new_tensor_3d(context_.get(), GGML_TYPE_F16, data.n_in, rank, slots),
           .b = ggml_new_tensor_3d(context_.get(), GGML_TYPE_F16, rank, data.segments[segment].columns, slots)});
    }
  }
}

void AdapterStacks::write(const StepData& step, std::size_t linear, std::size_t segment, const Stack& stack) {
  const LoraLinear data = step.lora(linear);
  SlotWriter writer(stack);
  for (std::size_t slot = 0; slot < step.adapters().size(); ++slot) {
    writer.write(slot, data.factors[slot * data.segments.size() + segment]);
  }
  writer.store(stack);
}

Result<void> AdapterStacks::fill(const StepData& step, const Backend& backend) {
  std::vector<std::uint64_t> wanted;
  for (const ResidentAdapter* adapter : step.adapters()) wanted.push_back(adapter->serial());
  if (wanted == adapters_ && buffer_) return {};
  adapters_ = std::move(wanted);
  describe(step);
  buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(context_.get(), backend.plain()));
  if (!buffer_) return failure(ErrorCode::overloaded, "there is no memory for the stacked adapters of a pass");
  for (std::size_t linear = 0; linear < stacks_.size(); ++linear) {
    for (std::size_t segment = 0; segment < stacks_[linear].size(); ++segment) {
      write(step, linear, segment, stacks_[linear][segment]);
    }
  }
  return {};
}

}  // namespace molly::engine
