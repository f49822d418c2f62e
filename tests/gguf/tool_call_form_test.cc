#include "gguf/tool_call_form.h"

#include <gtest/gtest.h>

namespace molly::gguf {
namespace {

TEST(ToolCallForm, is_told_by_what_the_template_writes) {
  struct Case {
    std::string_view chat_template;
    ToolCallForm form;
  };
  constexpr Case cases[] = {
      {"", ToolCallForm::none},
      {"{% if message.role == 'tool' %}<tool_response>", ToolCallForm::none},
      {R"({% for tool in tools %}<tool_call>{"name": <name>, "arguments": <object>}</tool_call>)",
       ToolCallForm::hermes},
      {R"({{ tools }}<tool_call>\n<function=name>\n<parameter=p>arguments</tool_call>)", ToolCallForm::other},
      {R"({{ tools }}<tool_call>name\n<arg_key>k</arg_key>{{ tc.arguments }}</tool_call>)", ToolCallForm::other},
      {R"({{ tools }}<|start_header_id|>'{"name": "' + n + '", "parameters": ')", ToolCallForm::llama3},
      {R"({{ tools }}<|start_header_id|>{\"name\": name, \"parameters\": object})", ToolCallForm::llama3},
      {"{{ tools }}[TOOL_CALLS] [{{ call.function | tojson }}]", ToolCallForm::mistral_list},
      {"{{ tools }}[TOOL_CALLS]{{ name }}[ARGS]{{ arguments }}", ToolCallForm::mistral_args},
      {"{{ tools }}<|tool_call|>", ToolCallForm::other}};
  for (const Case& one : cases) EXPECT_EQ(tool_call_form(one.chat_template), one.form) << one.chat_template;
}

}  // namespace
}  // namespace molly::gguf
