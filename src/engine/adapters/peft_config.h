#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"

namespace molly::engine {

// What PEFT's adapter_config.json says that matters for running the adapter. What cannot be run is refused when
// reading.
struct PeftConfig {
  template <class Value>
  using Pattern =
      std::vector<std::pair<std::string, Value>>;  // module names, or their ends; the first that fits counts

  std::uint32_t rank = 0;
  double alpha = 0;
  bool rank_stabilized = false;  // use_rslora: alpha / sqrt(rank) (Kalajdzievski, arXiv 2312.03732)
  Pattern<std::uint32_t> rank_pattern;
  Pattern<double> alpha_pattern;
  std::string base;  // base_model_name_or_path

  // `module`: "model.layers.3.self_attn.q_proj".
  std::uint32_t rank_of(std::string_view module) const;
  // At the rank that the module's factors have.
  double scale_of(std::string_view module, std::uint32_t actual_rank) const;
};

// invalid_request says what is wrong, or that DoRA, trained biases or wholly trained modules are not supported.
Result<PeftConfig> parse_peft_config(std::string_view json);

}  // namespace molly::engine
