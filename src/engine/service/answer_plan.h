#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/request.h"
#include "engine/service/parameters.h"
#include "engine/text/answer/answer_form.h"
#include "engine/text/chat_template.h"

namespace molly::engine {

// What the answers to a request may hold, and the grammar that binds them.
struct AnswerPlan {
  std::shared_ptr<const AnswerForm> form;
  std::string grammar;            // GBNF; empty: none
  bool binds_calls_only = false;  // from where one begins
};

// invalid_request and unsupported_parameter for a choice of tools or a schema that cannot be kept to. `chat_template`
// is null for text completions, `prompt` the rendered chat.
Result<AnswerPlan> plan_answer(const ChatTemplate* chat_template, const Request& request, const Parameters& parameters,
                               std::string_view prompt);

// Whether the model is told of the request's tools: not with tool_choice none.
bool tells_tools(const Request& request);

}  // namespace molly::engine
