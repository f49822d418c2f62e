#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/text/answer/call_format.h"

namespace molly::engine {

struct ReasoningTags {
  std::string open;
  std::string close;
};

enum class ReasoningStart : std::uint8_t {
  possible,  // the answer may begin with the opening tag
  opened,    // the prompt ends with the opening tag
  closed,    // the prompt ends with the closing tag: there is no reasoning
};

// What the text of an answer may hold beside content. By default nothing.
struct AnswerForm {
  const CallFormat* calls = nullptr;  // null: no text is a call
  std::vector<std::string> tools;     // the names that can be called
  std::optional<ReasoningTags> reasoning;
  ReasoningStart reasoning_start = ReasoningStart::possible;

  bool is_plain() const { return calls == nullptr && !reasoning; }
};

struct AnswerPart {
  enum class Kind : std::uint8_t {
    content,
    reasoning,
    call,       // the name of a tool: a call begins
    arguments,  // a piece of the JSON object for the call that began last
  };
  Kind kind = Kind::content;
  std::string text;
};

}  // namespace molly::engine
