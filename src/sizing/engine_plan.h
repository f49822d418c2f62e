#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "gguf/model_file.h"
#include "sizing/device.h"
#include "sizing/engine_memory.h"

namespace molly::sizing {

// What is said already; the plan keeps it, and chooses what is left at 0 or nothing.
struct EngineWishes {
  std::uint64_t memory_bytes = 0;  // for everything; 0: memory_for_models(device)
  std::uint32_t threads = 0;
  std::uint32_t context = 0;        // tokens of each request
  std::uint32_t parallel = 0;       // requests at a time
  std::uint32_t most_parallel = 8;  // where the plan chooses
  std::uint32_t page_tokens = 64;
  std::optional<NumberType> kv_type;
  NumberType adapter_type = NumberType::f16;
  std::uint32_t adapter_rank = 16;
  std::optional<std::uint64_t> pool_bytes;
  std::optional<std::uint64_t> warm_bytes;
};

// How molly-engine serves one model on one device. With a problem, the figures are those of the least that would do;
// there are none where the header does not say the model's sizes.
struct EnginePlan {
  std::string problem;              // why it cannot be, as a sentence for people; empty: it can
  std::uint64_t missing_bytes = 0;  // of memory
  bool useful_context = false;      // as long as was asked for, or at least `useful_context` tokens
  std::uint32_t threads = 0;
  std::uint32_t context = 0;   // tokens of each request
  std::uint32_t parallel = 0;  // requests at a time
  NumberType kv_type = NumberType::f16;
  std::uint32_t page_tokens = 0;
  std::uint64_t page_bytes = 0;
  std::uint64_t pages = 0;  // of the pool: keys and values of all requests, and the resident adapters
  std::uint32_t adapter_rank = 0;
  std::uint64_t adapter_bytes = 0;      // of one adapter of that rank in the pool
  std::uint32_t resident_adapters = 0;  // hot beside the whole context of every request
  std::uint64_t warm_bytes = 0;         // for adapters in host memory
  WeightBytes weights;
  std::uint64_t compute_bytes = 0;

  bool fits() const { return problem.empty(); }
  bool has_figures() const { return threads > 0; }
  std::uint64_t pool_bytes() const;
  std::uint64_t memory_bytes() const;  // of everything
  bool operator==(const EnginePlan&) const = default;
};

// Tokens that a request should have at least: a page of instructions, a document and an answer.
inline constexpr std::uint32_t useful_context = 4096;
// What a request has when nobody asked for more and memory allows.
inline constexpr std::uint32_t usual_context = 8192;

// Requests at a time are halved before the context falls below the useful length; keys and values become q8_0 where f16
// leaves no useful context even for one request; below that the context shrinks. What memory is left goes to resident
// adapters, then to warm ones. A pool that was asked for is taken as it is, whatever memory there is.
EnginePlan plan_engine(const Device& device, const gguf::ModelFile& model, const EngineWishes& wishes);

// One of several models or quantizations.
struct Candidate {
  std::uint64_t parameters = 0;
  double bits_per_weight = 0;
  bool useful = false;  // fits, with a useful context
};

inline constexpr std::string_view recommendation_rule =
    "Recommended is, of the models that fit with a useful context, the one with the most parameters at 4 bits a weight "
    "or more, and of its quantizations the one with the most bits.";

double bits_per_weight(const gguf::ModelFile& model);

// The index of the best; nothing when none is useful.
std::optional<std::size_t> recommend(std::span<const Candidate> candidates);

}  // namespace molly::sizing
