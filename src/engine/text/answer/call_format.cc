#include "engine/text/answer/call_format.h"

#include <utility>

namespace molly::engine {

Steps spaced(std::initializer_list<std::string_view> texts) {
  Steps steps{{.kind = Step::Kind::space, .text = {}, .group = {}}};
  for (const std::string_view text : texts) {
    steps.push_back(exactly(text));
    steps.push_back({.kind = Step::Kind::space, .text = {}, .group = {}});
  }
  return steps;
}

Steps joined(std::initializer_list<Steps> parts) {
  Steps all;
  for (const Steps& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

Step exactly(std::string_view text) { return {.kind = Step::Kind::text, .text = text, .group = {}}; }

Step perhaps(Steps group) { return {.kind = Step::Kind::optional, .text = {}, .group = std::move(group)}; }

const CallFormat* call_format(gguf::ToolCallForm form) {
  switch (form) {
    case gguf::ToolCallForm::hermes: return &hermes_calls();
    case gguf::ToolCallForm::llama3: return &llama3_calls();
    case gguf::ToolCallForm::mistral_list: return &mistral_list_calls();
    case gguf::ToolCallForm::mistral_args: return &mistral_args_calls();
    case gguf::ToolCallForm::none:
    case gguf::ToolCallForm::other: break;
  }
  return nullptr;
}

}  // namespace molly::engine
