#include "engine/text/answer/call_format.h"

namespace molly::engine {

// <tool_call>
// {"name": "weather", "arguments": {"place": "Paris"}}
// </tool_call>
const CallFormat& hermes_calls() {
  static const Step name{.kind = Step::Kind::quoted_name, .text = {}, .group = {}};
  static const CallFormat format{
      .mark = "<tool_call>",
      .special_texts = {"<tool_call>", "</tool_call>"},
      .head = joined({spaced({"{", R"("name")", ":"}), {name}, spaced({",", R"("arguments")", ":"})}),
      .tail = joined({spaced({"}"}), {exactly("</tool_call>")}}),
  };
  return format;
}

}  // namespace molly::engine
