#include "engine/model/step.h"

#include <algorithm>

namespace molly::engine {

StepData::StepData(const ModelConfig& config, const Weights& weights) {
  linears_.reserve(config.n_layer * projection_count);
  for (std::uint32_t layer = 0; layer < weights.layers.size(); ++layer) {
    const LayerWeights& parts = weights.layers[layer];
    for (const Linear& linear : parts.qkv) add_linear(layer, linear);
    add_linear(layer, parts.attn_output);
    for (const Linear& linear : parts.gate_up) add_linear(layer, linear);
    add_linear(layer, parts.ffn_down);
  }
}

void StepData::add_linear(std::uint32_t layer, const Linear& linear) {
  LinearData data{&linear, layer, static_cast<std::uint32_t>(linear.weight.tensor->ne[0]), {}, {}, {}};
  for (const Linear::Segment& segment : linear.segments) data.segments.push_back({segment.first, segment.columns});
  linears_.push_back(std::move(data));
}

std::size_t StepData::linear_number(const Linear& linear) const {
  const auto found = std::ranges::find(linears_, &linear, &LinearData::linear);
  return static_cast<std::size_t>(found - linears_.begin());
}

LoraLinear StepData::lora(std::size_t linear) const {
  const LinearData& data = linears_[linear];
  return {.n_in = data.n_in, .segments = data.segments, .factors = data.factors, .rows = rows_};
}

std::uint32_t StepData::number_of(const ResidentAdapter* adapter) {
  const auto found = std::ranges::find(adapters_, adapter);
  if (found == adapters_.end()) {
    adapters_.push_back(adapter);
    return static_cast<std::uint32_t>(adapters_.size() - 1);
  }
  return static_cast<std::uint32_t>(found - adapters_.begin());
}

// Neighbouring sequences with one and the same adapter become one run of rows: its factors are read once for all of
// them.
void StepData::add_rows(std::uint32_t first_row, std::uint32_t rows, std::span<const AdapterShare> shares) {
  for (const AdapterShare& share : shares) {
    const std::uint32_t adapter = number_of(share.adapter);
    const bool continues = shares.size() == 1 && !rows_.empty() && rows_.back().adapter == adapter &&
                           rows_.back().weight == share.weight &&
                           rows_.back().first_row + rows_.back().rows == first_row;
    if (continues) {
      rows_.back().rows += rows;
    } else {
      rows_.push_back({.first_row = first_row, .rows = rows, .adapter = adapter, .weight = share.weight, .hidden = 0});
    }
  }
}

void StepData::fill(std::span<const StepSequence> sequences) {
  sequence_rows_.clear();
  rows_.clear();
  adapters_.clear();
  mixture_depth_ = 0;
  std::uint32_t row = 0;
  for (const StepSequence& sequence : sequences) {
    const auto rows = static_cast<std::uint32_t>(sequence.tokens.size());
    sequence_rows_.push_back({row, rows, sequence.first_position, sequence.pages});
    add_rows(row, rows, sequence.adapters);
    mixture_depth_ = std::max(mixture_depth_, sequence.adapters.size());
    row += rows;
  }
  if (rows_.empty()) return;
  if (!std::ranges::equal(adapters_, looked_up_, {}, &ResidentAdapter::serial)) look_up_factors();
  hidden_.resize(std::max(hidden_.size(), place_hidden(rows_, rank_sums_)));
}

void StepData::look_up_factors() {
  rank_sums_.assign(adapters_.size(), 0);
  for (LinearData& data : linears_) {
    data.factors.clear();
    for (std::size_t adapter = 0; adapter < adapters_.size(); ++adapter) {
      std::uint32_t rank_sum = 0;
      for (const Linear::Segment& segment : data.linear->segments) {
        data.factors.push_back(adapters_[adapter]->factors(data.layer, segment.projection));
        rank_sum += data.factors.back().rank();
      }
      rank_sums_[adapter] = std::max(rank_sums_[adapter], rank_sum);
    }
    data.factor_memory = memory_of({.n_in = data.n_in, .segments = data.segments, .factors = data.factors, .rows = {}});
  }
  looked_up_.clear();
  for (const ResidentAdapter* adapter : adapters_) looked_up_.push_back(adapter->serial());
}

}  // namespace molly::engine
