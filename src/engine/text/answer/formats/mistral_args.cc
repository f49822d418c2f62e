#include "engine/text/answer/call_format.h"

namespace molly::engine {

// [TOOL_CALLS]weather[ARGS]{"place": "Paris"}
// Tokenizer v11 writes [CALL_ID]a1B2c3D4e before [ARGS].
const CallFormat& mistral_args_calls() {
  static const Step name{.kind = Step::Kind::plain_name, .text = {}, .group = {}};
  static const Step word{.kind = Step::Kind::word, .text = {}, .group = {}};
  static const CallFormat format{
      .mark = "[TOOL_CALLS]",
      .special_texts = {"[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"},
      .head = {name,
               perhaps({exactly("[CALL_ID]"), word}),
               exactly("[ARGS]"),
               {.kind = Step::Kind::space, .text = {}, .group = {}}},
      .has_short_ids = true,
  };
  return format;
}

}  // namespace molly::engine
