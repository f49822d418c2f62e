#include "engine/text/template_input.h"

#include <algorithm>
#include <format>
#include <utility>

#include "wire/json_reader.h"

namespace molly::engine {
namespace {

std::unexpected<Error> refuse(std::string sentence, std::string field) {
  return failure(ErrorCode::invalid_request, std::move(sentence), std::move(field));
}

// The reader bounds the depth, which nlohmann's does not.
Result<Json> parsed(const std::string& text, const std::string& field) {
  wire::JsonReader in(text);
  in.skip();
  in.expect_end();
  Json value = in.ok() ? Json::parse(text, nullptr, false) : Json(Json::value_t::discarded);
  if (value.is_discarded()) return refuse("is not JSON, which this model's chat template needs", field);
  return value;
}

struct Texts {
  std::vector<std::string> texts;
  std::string reasoning;
};

Result<Texts> texts_of(const Message& message, const std::string& field) {
  Texts result;
  if (message.content.form == Content::Form::text) result.texts.push_back(message.content.text);
  for (std::size_t at = 0; at < message.content.parts.size(); ++at) {
    const auto& value = message.content.parts[at].value;
    if (const auto* text = std::get_if<TextPart>(&value)) {
      result.texts.push_back(text->text);
    } else if (const auto* refusal = std::get_if<RefusalPart>(&value)) {
      result.texts.push_back(refusal->text);
    } else if (const auto* reasoning = std::get_if<ReasoningPart>(&value)) {
      result.reasoning += reasoning->text;
    } else {
      return refuse("this model reads text only", std::format("{}.content[{}]", field, at));
    }
  }
  if (message.reasoning) result.reasoning = *message.reasoning;
  if (message.refusal && !message.refusal->empty()) result.texts.push_back(*message.refusal);
  return result;
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (std::size_t at = 0; at < texts.size(); ++at) all += (at == 0 ? "" : "\n") + texts[at];
  return all;
}

Json content_of(const std::vector<std::string>& texts, const TemplateTaste& taste) {
  if (!taste.typed_content) return joined(texts);
  Json parts = Json::array();
  for (const std::string& text : texts) parts.push_back({{"type", "text"}, {"text", text}});
  return parts;
}

Result<Json> arguments_of(const ToolCall& call, const TemplateTaste& taste, const std::string& field) {
  if (!taste.object_arguments) return Json(call.arguments);
  if (call.arguments.empty()) return Json::object();
  return parsed(call.arguments, field + ".function.arguments");
}

Result<Json> tool_calls_of(const Message& message, const TemplateTaste& taste, const std::string& field) {
  Json calls = Json::array();
  for (std::size_t at = 0; at < message.tool_calls.size(); ++at) {
    const ToolCall& call = message.tool_calls[at];
    const std::string here = std::format("{}.tool_calls[{}]", field, at);
    if (!call.kind.empty() && call.kind != "function") return refuse("only functions can be called", here + ".type");
    auto arguments = arguments_of(call, taste, here);
    if (!arguments) return arguments;
    Json one{{"type", "function"}, {"function", {{"name", call.name}, {"arguments", *std::move(arguments)}}}};
    if (!call.id.empty()) one["id"] = call.id;
    calls.push_back(std::move(one));
  }
  return calls;
}

std::string role_of(const Message& message, const TemplateTaste& taste) {
  if (message.role == Role::other) return message.role_name;
  if (message.role == Role::developer && !taste.developer_role) return "system";
  return std::string(to_string(message.role));
}

Result<Json> message_of(const Message& message, const TemplateTaste& taste, const std::string& field) {
  const auto texts = texts_of(message, field);
  if (!texts) return std::unexpected(texts.error());
  Json result{{"role", role_of(message, taste)}, {"content", content_of(texts->texts, taste)}};
  if (!texts->reasoning.empty()) result["reasoning_content"] = texts->reasoning;
  if (!message.name.empty()) result["name"] = message.name;
  if (!message.tool_call_id.empty()) result["tool_call_id"] = message.tool_call_id;
  if (message.tool_calls.empty()) return result;
  auto calls = tool_calls_of(message, taste, field);
  if (!calls) return calls;
  result["tool_calls"] = *std::move(calls);
  return result;
}

Result<Json> tool_of(const Tool& tool, const std::string& field) {
  if (tool.kind != "function") return refuse("only functions are supported as tools", field + ".type");
  Json parameters = Json::object();
  if (!tool.parameters.text.empty()) {
    auto given = parsed(tool.parameters.text, field + ".function.parameters");
    if (!given) return given;
    parameters = *std::move(given);
  }
  return Json{
      {"type", "function"},
      {"function", {{"name", tool.name}, {"description", tool.description}, {"parameters", std::move(parameters)}}}};
}

bool has_text(const Json& value) {
  return value.is_string() && value.get_ref<const std::string&>().find_first_not_of(" \t\r\n") != std::string::npos;
}

void merge_system_message(Json& messages) {
  if (messages.size() < 2 || messages[0].at("role") != "system" || !messages[1].at("content").is_string()) return;
  Json& content = messages[1].at("content");
  content = messages[0].at("content").get<std::string>() + "\n" + content.get<std::string>();
  messages.erase(messages.begin());
}

void visit_string(Json& value, const TextVisitor& visit, const std::string& field) {
  if (has_text(value)) visit(value.get_ref<std::string&>(), field);
}

void visit_content(Json& content, const TextVisitor& visit, const std::string& field) {
  if (!content.is_array()) return visit_string(content, visit, field);
  for (Json& part : content) visit_string(part.at("text"), visit, field);
}

// Its members become one whose name and value are texts to look for.
void visit_arguments(Json& arguments, const TextVisitor& visit, const std::string& field) {
  const bool spelled = arguments.is_string();
  if (spelled ? !has_text(arguments) : arguments.empty()) return;
  std::string name = "name";
  std::string value = "value";
  visit(name, field);
  visit(value, field);
  const Json marked{{name, value}};
  arguments = spelled ? Json(marked.dump()) : marked;
}

void visit_parameters(Json& parameters, const TextVisitor& visit, const std::string& field) {
  if (!parameters.contains("properties") || parameters.at("properties").empty()) return;
  std::string name = "name";
  visit(name, field);
  const Json property{{"type", "string"}, {"description", "A text"}};
  parameters = Json{{"type", "object"}, {"properties", {{name, property}}}, {"required", Json::array({name})}};
}

}  // namespace

Result<TemplateInput> template_input(const Request& request, const TemplateTaste& taste) {
  TemplateInput input;
  for (std::size_t at = 0; at < request.messages.size(); ++at) {
    auto message = message_of(request.messages[at], taste, std::format("messages[{}]", at));
    if (!message) return std::unexpected(message.error());
    input.messages.push_back(*std::move(message));
  }
  for (std::size_t at = 0; at < request.tools.size(); ++at) {
    auto tool = tool_of(request.tools[at], std::format("tools[{}]", at));
    if (!tool) return std::unexpected(tool.error());
    input.tools.push_back(*std::move(tool));
  }
  if (!taste.system_role) merge_system_message(input.messages);
  return input;
}

void visit_texts(TemplateInput& input, const TextVisitor& visit) {
  for (std::size_t at = 0; at < input.messages.size(); ++at) {
    Json& message = input.messages[at];
    const std::string field = std::format("messages[{}]", at);
    visit_content(message.at("content"), visit, field + ".content");
    if (!message.contains("tool_calls")) continue;
    for (Json& call : message.at("tool_calls")) {
      visit_string(call.at("function").at("name"), visit, field + ".tool_calls");
      visit_arguments(call.at("function").at("arguments"), visit, field + ".tool_calls");
    }
  }
  for (Json& tool : input.tools) {
    Json& function = tool.at("function");
    visit_string(function.at("name"), visit, "tools");
    visit_string(function.at("description"), visit, "tools");
    visit_parameters(function.at("parameters"), visit, "tools");
  }
}

std::set<std::string> special_roles(const TemplateInput& input) {
  std::set<std::string> roles;
  for (const Json& message : input.messages) roles.insert(message.at("role").get<std::string>());
  for (const char* plain : {"system", "user", "assistant"}) roles.erase(plain);
  return roles;
}

}  // namespace molly::engine
