#pragma once

#include <ggml.h>

#include <cstdint>
#include <vector>

#include "engine/model/backend.h"
#include "engine/model/step.h"

namespace molly::engine {

// The adapters of a pass as ggml_mul_mat_id takes them: for each projection all A and all B in half precision, padded
// to one rank with zeros. The slot after the last adapter is all zeros: no adapter.
class AdapterStacks {
 public:
  struct Stack {
    ggml_tensor* a = nullptr;  // F16 [n_in, rank, slots]
    ggml_tensor* b = nullptr;  // F16 [rank, n_out, slots]
  };

  // overloaded: there is no memory for them.
  Result<void> fill(const StepData& step, const Backend& backend);

  const Stack& at(std::size_t linear, std::size_t segment) const { return stacks_[linear][segment]; }
  std::int32_t empty_slot() const { return static_cast<std::int32_t>(adapters_.size()); }

 private:
  void describe(const StepData& step);
  static void write(const StepData& step, std::size_t linear, std::size_t segment, const Stack& stack);

  std::vector<std::uint64_t> adapters_;  // their serials
  Context context_;
  Buffer buffer_;
  std::vector<std::vector<Stack>> stacks_;  // by linear, by segment
};

}  // namespace molly::engine
