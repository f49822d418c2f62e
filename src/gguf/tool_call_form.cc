#include "gguf/tool_call_form.h"

#include <algorithm>
#include <span>

namespace molly::gguf {
namespace {

struct Signs {
  ToolCallForm form;
  std::span<const std::string_view> all;   // each is in the template
  std::span<const std::string_view> none;  // forms with the same marks but another content
};

constexpr std::string_view mistral_args[] = {"[TOOL_CALLS]", "[ARGS]"};
constexpr std::string_view mistral_list[] = {"[TOOL_CALLS]"};
constexpr std::string_view hermes[] = {"<tool_call>", "</tool_call>", "arguments"};
constexpr std::string_view llama3[] = {"<|start_header_id|>", "\"parameters"};
constexpr std::string_view tagged[] = {"<function=", "<parameter=", "<arg_key>"};

constexpr Signs forms[] = {{ToolCallForm::mistral_args, mistral_args, {}},
                           {ToolCallForm::mistral_list, mistral_list, {}},
                           {ToolCallForm::hermes, hermes, tagged},
                           {ToolCallForm::llama3, llama3, tagged}};

}  // namespace

ToolCallForm tool_call_form(std::string_view chat_template) {
  // Templates name the variable `tools`; one that only renders messages of role "tool" does not.
  if (!chat_template.contains("tools")) return ToolCallForm::none;
  const auto holds = [&](std::string_view sign) { return chat_template.contains(sign); };
  const auto* found = std::ranges::find_if(forms, [&](const Signs& signs) {
    return std::ranges::all_of(signs.all, holds) && std::ranges::none_of(signs.none, holds);
  });
  return found == std::end(forms) ? ToolCallForm::other : found->form;
}

}  // namespace molly::gguf
