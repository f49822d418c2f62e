#include "engine/service/answer_plan.h"

#include <algorithm>
#include <format>

#include "engine/text/answer/answer_grammar.h"
#include "engine/text/answer/reasoning.h"

namespace molly::engine {
namespace {

using Mode = ToolChoice::Mode;

constexpr std::size_t most_tools = 256;

bool must_call(const ToolChoice& choice) { return choice.mode == Mode::required || choice.mode == Mode::named; }

bool has_tool(const Request& request, std::string_view name) {
  return std::ranges::contains(request.tools, name, &Tool::name);
}

Result<void> check_choice(const Request& request) {
  const ToolChoice& choice = request.tool_choice;
  if (choice.mode == Mode::opaque) {
    return failure(ErrorCode::unsupported_parameter, "this kind of tool_choice is not known", "tool_choice");
  }
  if (must_call(choice) && request.tools.empty()) {
    return failure(ErrorCode::invalid_request, "tool_choice asks for a call, and there are no tools", "tool_choice");
  }
  if (choice.mode == Mode::named && !has_tool(request, choice.name)) {
    return failure(ErrorCode::invalid_request, "tool_choice names a tool that is not among tools", "tool_choice");
  }
  if (request.tools.size() <= most_tools) return {};
  return failure(ErrorCode::invalid_request, std::format("tools may be up to {}", most_tools), "tools");
}

std::vector<CallableTool> callable_tools(const Request& request) {
  std::vector<CallableTool> callable;
  for (std::size_t at = 0; at < request.tools.size(); ++at) {
    const Tool& tool = request.tools[at];
    if (request.tool_choice.mode == Mode::named && tool.name != request.tool_choice.name) continue;
    callable.push_back({.name = tool.name,
                        .parameters = tool.parameters.text,
                        .strict = tool.strict.value_or(false),
                        .field = std::format("tools[{}].function.parameters", at)});
  }
  return callable;
}

AnswerForm form_of(const ChatTemplate& chat_template, const Request& request, std::string_view prompt) {
  AnswerForm form;
  form.reasoning = chat_template.reasoning();
  if (form.reasoning) form.reasoning_start = reasoning_start(*form.reasoning, prompt);
  if (!tells_tools(request)) return form;
  form.calls = chat_template.calls();
  for (const Tool& tool : request.tools) form.tools.push_back(tool.name);
  return form;
}

AnswerRules rules_of(const Request& request, const Parameters& parameters) {
  const ToolChoice& choice = request.tool_choice;
  AnswerRules rules{.several_calls = choice.mode != Mode::named && request.parallel_tool_calls.value_or(true)};
  if (tells_tools(request)) rules.callable = callable_tools(request);
  if (!must_call(choice)) rules.response_schema = parameters.response_schema;
  return rules;
}

// An answer may call, or say anything else: only the calls are bound.
bool leaves_content_open(const Request& request, const AnswerRules& rules) {
  return !rules.callable.empty() && !rules.response_schema && !must_call(request.tool_choice);
}

}  // namespace

bool tells_tools(const Request& request) { return !request.tools.empty() && request.tool_choice.mode != Mode::none; }

Result<AnswerPlan> plan_answer(const ChatTemplate* chat_template, const Request& request, const Parameters& parameters,
                               std::string_view prompt) {
  if (auto checked = check_choice(request); !checked) return std::unexpected(checked.error());
  const bool is_chat = request.endpoint == Endpoint::chat && chat_template != nullptr;
  AnswerForm form = is_chat ? form_of(*chat_template, request, prompt) : AnswerForm{};
  const AnswerRules rules = rules_of(request, parameters);
  if (!rules.callable.empty() && form.calls == nullptr) {
    return failure(ErrorCode::unsupported_parameter,
                   "the engine does not know the form in which this model calls tools", "tools");
  }
  if (!parameters.sampling.grammar.empty()) {
    if (!rules.callable.empty() || rules.response_schema) {
      return failure(ErrorCode::invalid_request, "a grammar cannot stand beside tools or a response_format", "grammar");
    }
    return AnswerPlan{std::make_shared<AnswerForm>(), parameters.sampling.grammar};
  }
  const bool calls_only = leaves_content_open(request, rules);
  auto grammar = calls_only ? calls_grammar(form, rules) : answer_grammar(form, rules);
  if (!grammar) return std::unexpected(grammar.error());
  return AnswerPlan{std::make_shared<AnswerForm>(std::move(form)), *std::move(grammar), calls_only};
}

}  // namespace molly::engine
