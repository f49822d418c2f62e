#include "engine/text/answer/call_format.h"

namespace molly::engine {

// {"name": "weather", "parameters": {"place": "Paris"}}
// Small models begin with "type": "function", and some write <|python_tag|> before it.
const CallFormat& llama3_calls() {
  static const Step name{.kind = Step::Kind::quoted_name, .text = {}, .group = {}};
  static const Step type = perhaps(spaced({R"("type")", ":", R"("function")", ","}));
  static const CallFormat format{
      .mark = "<|python_tag|>",
      .may_lack_mark = true,
      .special_texts = {"<|python_tag|>"},
      .head =
          joined({spaced({"{"}), {type}, spaced({R"("name")", ":"}), {name}, spaced({",", R"("parameters")", ":"})}),
      .tail = {{.kind = Step::Kind::space, .text = {}, .group = {}}, exactly("}")},
      .several = false,
  };
  return format;
}

}  // namespace molly::engine
