#include "engine/text/answer/call_format.h"

namespace molly::engine {

// [TOOL_CALLS][{"name": "weather", "arguments": {"place": "Paris"}, "id": "a1B2c3D4e"}]
// The id comes too late to be the call's: clients get one of ours before the arguments.
const CallFormat& mistral_list_calls() {
  static const Step name{.kind = Step::Kind::quoted_name, .text = {}, .group = {}};
  static const Step word{.kind = Step::Kind::word, .text = {}, .group = {}};
  static const Step id = perhaps(joined({spaced({",", R"("id")", ":"}), {exactly("\""), word, exactly("\"")}}));
  static const CallFormat format{
      .mark = "[TOOL_CALLS]",
      .special_texts = {"[TOOL_CALLS]"},
      .opening = spaced({"["}),
      .head = joined({spaced({"{", R"("name")", ":"}), {name}, spaced({",", R"("arguments")", ":"})}),
      .tail = joined({{id}, spaced({"}"})}),
      .separator = spaced({","}),
      .closing = {exactly("]")},
      .has_short_ids = true,
  };
  return format;
}

}  // namespace molly::engine
