#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/schedule/executor.h"
#include "engine/schedule/fairness.h"
#include "engine/schedule/generation.h"
#include "engine/schedule/prompt_outputs.h"

namespace molly::engine {

// What came of an attempt to let a sequence run.
enum class Admission : std::uint8_t {
  admitted,
  waits_for_adapter,
  waits_for_prefix,
  lacks_adapter_pages,
  lacks_pages,
  failed,
};

// A request on its way. While it waits it holds neither pages nor adapters.
struct Sequence {
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::uint32_t nowhere = std::numeric_limits<std::uint32_t>::max();

  GenerationId id = 0;
  GenerationRequest request;  // its prompt is in `tokens`
  PrefixKey key;
  std::string work;  // its kind, for the governor of drafting
  MemberAccount* member = nullptr;
  Account* adapter_account = nullptr;

  std::vector<Token> tokens;        // the prompt, then what was generated
  std::uint32_t prompt_tokens = 0;  // of these
  std::uint32_t computed = 0;       // of these, whose keys and values are in `pages`; these never change again
  std::vector<PageId> pages;
  std::vector<AdapterShare> adapters;
  PromptOutputs prompt_outputs;
  bool prompt_is_done = false;

  // For the step being planned.
  std::uint32_t rows = 0;             // without drafts
  std::uint32_t pause_at = nowhere;   // computed tokens at which others want to take over what there is
  std::uint64_t lacked_pages_at = 0;  // State::changes at the last attempt that was vain for want of pages
  Admission lacked{};                 // what for
  std::uint32_t overtaken = 0;        // by how many it was while it lacked pages for its adapters

  Time submitted{};
  std::optional<Time> started;      // computing
  std::optional<Time> first_token;  // was chosen, or would have been
  GenerationTimings timings;

  std::uint32_t length() const { return static_cast<std::uint32_t>(tokens.size()); }
  std::uint32_t generated() const { return length() - prompt_tokens; }
  std::span<const Token> prompt() const { return std::span(tokens).first(prompt_tokens); }
  // One token a step, unless it must first compute its prompt, or what it lost when it was preempted.
  bool decodes() const { return prompt_is_done && computed + 1 == length(); }
  // Of its tokens, how many need not be computed when their keys and values are known. The last one must, for its
  // logits, and every one whose outputs are still wanted.
  std::uint32_t reusable() const {
    const bool reads_all = prompt_outputs.of_every_position() && !prompt_is_done;
    return reads_all ? prompt_outputs.positions_read() : length() - 1;
  }
};

}  // namespace molly::engine
