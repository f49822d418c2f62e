#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/adapters/image.h"
#include "engine/kernels/attention.h"
#include "engine/kernels/isa.h"
#include "engine/kernels/lora.h"
#include "engine/model/config.h"
#include "engine/model/weights.h"
#include "engine/schedule/executor.h"

namespace molly::engine {

// What the custom operations of a forward pass read beside their tensors. Filled before each pass, and the same object
// for all: graphs keep its address.
class StepData {
 public:
  StepData(const ModelConfig& config, const Weights& weights);

  // Sets everything for a pass over these sequences. The spans in `sequences` must live until the pass is done.
  void fill(std::span<const StepSequence> sequences);

  bool has_adapters() const { return !rows_.empty(); }
  std::span<const SequenceRows> sequences() const { return sequence_rows_; }
  // Of the pass, in order of first use: what LoraRows::adapter counts.
  std::span<const ResidentAdapter* const> adapters() const { return adapters_; }
  std::span<const LoraRows> adapter_rows() const { return rows_; }
  std::size_t mixture_depth() const { return mixture_depth_; }  // adapters of the row that mixes most

  // The linear of that number, in the order in which linear_number() gave them.
  LoraLinear lora(std::size_t linear) const;
  std::size_t linear_number(const Linear& linear) const;
  std::size_t linears() const { return linears_.size(); }
  std::span<float> hidden() { return hidden_; }
  // What the adapters of the pass have in that linear; at the same address for every pass.
  const std::vector<MemoryRun>& factor_memory(std::size_t linear) const { return linears_[linear].factor_memory; }

 private:
  struct LinearData {
    const Linear* linear = nullptr;
    std::uint32_t layer = 0;
    std::uint32_t n_in = 0;
    std::vector<LoraSegment> segments;
    std::vector<LoraFactors> factors;  // of the pass's adapters
    std::vector<MemoryRun> factor_memory;
  };

  void add_linear(std::uint32_t layer, const Linear& linear);
  std::uint32_t number_of(const ResidentAdapter* adapter);
  void add_rows(std::uint32_t first_row, std::uint32_t rows, std::span<const AdapterShare> shares);
  void look_up_factors();

  std::vector<LinearData> linears_;
  std::vector<SequenceRows> sequence_rows_;
  std::vector<LoraRows> rows_;
  std::vector<const ResidentAdapter*> adapters_;  // of the pass, in order of first use
  std::vector<std::uint64_t> looked_up_;          // serials of those for which the factors are in place
  std::size_t mixture_depth_ = 0;
  std::vector<std::uint32_t> rank_sums_;
  std::vector<float> hidden_;
};

}  // namespace molly::engine
