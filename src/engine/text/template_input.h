#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/request.h"

namespace molly::engine {

using Json = nlohmann::ordered_json;

// A request's conversation in the form that chat templates expect, the one of Hugging Face's apply_chat_template.
struct TemplateInput {
  Json messages = Json::array();
  Json tools = Json::array();
};

// What a template expects beyond that.
struct TemplateTaste {
  bool typed_content = false;     // content as a list of parts, not as a string
  bool object_arguments = false;  // of tool calls, not as a string of JSON
  bool developer_role = false;    // else developer is spelled system
  bool system_role = true;        // else the first system message goes before the text of the next message
};

// invalid_request for what no text prompt can hold: images, audio, files, tools that are no functions.
Result<TemplateInput> template_input(const Request& request, const TemplateTaste& taste);

// Calls visit(text, field) for every text that the rendered prompt must hold: of messages, tool calls and tools. It may
// change the text. Afterwards a tool's parameters and a call's arguments are one property each, of the texts visited.
using TextVisitor = std::function<void(std::string& text, const std::string& field)>;
void visit_texts(TemplateInput& input, const TextVisitor& visit);

// Roles beside system, user and assistant.
std::set<std::string> special_roles(const TemplateInput& input);

}  // namespace molly::engine
