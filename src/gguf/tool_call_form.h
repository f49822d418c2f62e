#pragma once

#include <cstdint>
#include <string_view>

namespace molly::gguf {

// How a model writes a call of a tool, judged by the chat template in its file.
enum class ToolCallForm : std::uint8_t {
  none,          // the template names no tools
  hermes,        // <tool_call>{"name":..,"arguments":{..}}</tool_call>: Hermes 2 Pro and 3, Qwen 2.5, Qwen 3
  llama3,        // {"name":..,"parameters":{..}}, also after <|python_tag|>: Llama 3.1 to 3.3
  mistral_list,  // [TOOL_CALLS][{"name":..,"arguments":{..}}]: Mistral's tokenizers up to v7
  mistral_args,  // [TOOL_CALLS]name[ARGS]{..}: Mistral's tokenizers from v11 on
  other,
};

ToolCallForm tool_call_form(std::string_view chat_template);

}  // namespace molly::gguf
