#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "gguf/tool_call_form.h"

namespace molly::engine {

struct Step;
using Steps = std::vector<Step>;

// A piece of how a call is written.
struct Step {
  enum class Kind : std::uint8_t {
    space,        // any white space, or none
    text,         // exactly `text`
    quoted_name,  // a tool's name as a JSON string
    plain_name,
    word,      // letters and digits
    optional,  // the steps in `group`, or nothing
  };
  Kind kind = Kind::space;
  std::string_view text;
  Steps group;
};

// How a family of models writes calls: one table from which both the reader of calls (CallSplitter) and the grammar
// that makes them certain (add_calls) are made.
//
//   mark opening (head ARGUMENTS tail) (separator head ARGUMENTS tail)* closing
//
// Without a separator further calls begin with the mark again.
struct CallFormat {
  std::string_view mark;                          // what begins a call, wherever it stands in the answer
  bool may_lack_mark = false;                     // at the very start of an answer, where the head begins with {
  std::vector<std::string_view> special_texts{};  // parts that may be special tokens, whose text counts here
  Steps opening{};
  Steps head{};
  Steps tail{};
  Steps separator{};
  Steps closing{};
  bool several = true;         // calls in one answer
  bool has_short_ids = false;  // ids of calls must be 9 letters and digits
};

// Null for `none` and `other`.
const CallFormat* call_format(gguf::ToolCallForm form);

// One for each form; formats/*.cc.
const CallFormat& hermes_calls();
const CallFormat& llama3_calls();
const CallFormat& mistral_list_calls();
const CallFormat& mistral_args_calls();

// Each text after white space, and white space after the last.
Steps spaced(std::initializer_list<std::string_view> texts);
Steps joined(std::initializer_list<Steps> parts);
Step exactly(std::string_view text);
Step perhaps(Steps group);

}  // namespace molly::engine
