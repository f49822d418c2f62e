#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/text/answer/answer_form.h"

namespace molly::engine {

// The tags that a chat template puts around reasoning: <think> or [THINK].
std::optional<ReasoningTags> reasoning_tags(std::string_view chat_template);

// How a rendered prompt has the answer begin.
ReasoningStart reasoning_start(const ReasoningTags& tags, std::string_view prompt);

// Parts the reasoning at the start of an answer from the rest. White space around the tags is dropped.
class ReasoningSplitter {
 public:
  struct Split {
    std::string reasoning;
    std::string answer;
  };

  ReasoningSplitter(ReasoningTags tags, ReasoningStart start);

  Split append(std::string_view bytes);
  Split finish();
  bool is_reasoning() const { return state_ == State::reasoning; }

 private:
  enum class State : std::uint8_t { before, reasoning, gap, answer };

  void look_for_reasoning();
  void reason(Split& split);
  void tell_reasoning(std::size_t bytes, Split& split);

  ReasoningTags tags_;
  State state_;
  std::string held_;
  bool has_reasoned_ = false;
};

}  // namespace molly::engine
