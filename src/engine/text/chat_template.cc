#include "engine/text/chat_template.h"

#include <algorithm>
#include <format>
#include <mutex>
#include <optional>
#include <unordered_set>
#include <vector>

#include "base/json_writer.h"
#include "engine/text/answer/reasoning.h"
#include "engine/text/jinja.h"
#include "engine/text/template_input.h"
#include "wire/json_reader.h"

namespace molly::engine {
namespace {

constexpr std::size_t most_remembered = 256;

struct Needle {
  std::string text;
  std::string field;
};

// A conversation of the same form with texts that appear nowhere else.
struct Marked {
  TemplateInput input;
  std::vector<Needle> needles;
};

Marked marked(const TemplateInput& input) {
  Marked result{input, {}};
  visit_texts(result.input, [&](std::string& text, const std::string& field) {
    text = std::format("Zmark{}z", result.needles.size());
    result.needles.push_back({text, field});
  });
  return result;
}

std::vector<Needle> texts_of(TemplateInput input) {
  std::vector<Needle> needles;
  visit_texts(input, [&](const std::string& text, const std::string& field) {
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    const std::size_t last = text.find_last_not_of(" \t\r\n");
    if (field.ends_with("content")) needles.push_back({text.substr(first, last - first + 1), field});
  });
  return needles;
}

// Some templates write tool results as JSON.
bool holds(const std::string& prompt, const std::string& text) {
  if (prompt.contains(text)) return true;
  const std::string quoted = base::json_string(text);
  return prompt.contains(std::string_view(quoted).substr(1, quoted.size() - 2));
}

std::optional<Needle> first_missing(const std::string& prompt, const std::vector<Needle>& needles) {
  const auto missing = std::ranges::find_if(needles, [&](const Needle& one) { return !holds(prompt, one.text); });
  return missing == needles.end() ? std::nullopt : std::optional(*missing);
}

Result<Json> parse_extra(const std::string& text) {
  if (text.empty()) return Json::object();
  wire::JsonReader in(text);
  in.object([&](std::string_view) { in.skip(); });
  in.expect_end();
  Json extra = in.ok() ? Json::parse(text, nullptr, false) : Json(nullptr);
  if (extra.is_object()) return extra;
  return failure(ErrorCode::invalid_request, "must be an object", "chat_template_kwargs");
}

std::string dumped(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::unexpected<Error> left_out(const std::string& what, std::string field) {
  return failure(ErrorCode::invalid_request, std::format("the model's chat template would leave out {}", what),
                 std::move(field));
}

Json user_message(const char* text) { return {{"role", "user"}, {"content", text}}; }

Json call_message(Json arguments) {
  const Json call{{"type", "function"},
                  {"function", {{"name", "Zcallz"}, {"arguments", std::move(arguments)}}},
                  {"id", "call12345"}};
  return {{"role", "assistant"}, {"content", ""}, {"tool_calls", Json::array({call})}};
}

Json tool_definition() {
  const Json parameters{{"type", "object"},
                        {"properties", {{"place", {{"type", "string"}, {"description", "A place"}}}}},
                        {"required", Json::array({"place"})}};
  return {{"type", "function"},
          {"function", {{"name", "Ztoolz"}, {"description", "A tool"}, {"parameters", parameters}}}};
}

}  // namespace

struct ChatTemplate::State {
  Jinja jinja;
  std::string beginning_token;
  std::string end_token;
  TemplateTaste taste;
  bool renders_tools = false;
  const CallFormat* calls = nullptr;
  std::optional<ReasoningTags> reasoning;
  std::mutex mutex;
  std::unordered_set<std::string> proven;  // forms of conversations of which nothing is left out

  State(Jinja parsed, std::string_view source, std::string_view beginning, std::string_view end)
      : jinja(std::move(parsed)), beginning_token(beginning), end_token(end) {
    taste.developer_role = source.contains("<|channel|>");  // gpt-oss has that role
    taste.typed_content = !shows("Zmarkz", {Json::array({user_message("Zmarkz")}), {}}) &&
                          shows("Zmarkz", {Json::array({{{"role", "user"}, {"content", typed("Zmarkz")}}}), {}});
    taste.system_role = shows("Zsystemz", {conversation({{"role", "system"}, {"content", text("Zsystemz")}}), {}});
    taste.object_arguments = wants_object_arguments();
    renders_tools = shows("Ztoolz", {Json::array({first_message()}), Json::array({tool_definition()})});
    if (renders_tools) calls = call_format(gguf::tool_call_form(source));
    reasoning = reasoning_tags(source);
  }

  Result<std::string> render(const TemplateInput& input, bool add_generation_prompt, const Json& extra) const {
    Json variables{{"messages", input.messages},
                   {"bos_token", beginning_token},
                   {"eos_token", end_token},
                   {"enable_thinking", true},
                   {"add_generation_prompt", add_generation_prompt}};
    if (!input.tools.empty()) variables["tools"] = input.tools;
    variables.update(extra);
    return jinja.render(variables);
  }

  Result<void> check_complete(const TemplateInput& input, const std::string& prompt, const TemplateOptions& options,
                              const Json& extra) {
    const Marked probe = marked(input);
    const std::string form = dumped(probe.input.messages) + dumped(probe.input.tools) + options.extra_json +
                             (options.add_generation_prompt ? "+" : "-");
    if (is_proven(form)) return {};
    const auto shown = render(probe.input, options.add_generation_prompt, extra);
    // A template may look into texts and refuse the probe's.
    const auto missing = shown ? first_missing(*shown, probe.needles) : first_missing(prompt, texts_of(input));
    if (missing) return left_out(missing->field == "tools" ? "the tools" : "a message", missing->field);
    if (!shown) return {};
    if (auto roles = check_roles(probe.input, *shown, options.add_generation_prompt, extra); !roles) return roles;
    remember(form);
    return {};
  }

 private:
  static Json typed(const char* words) { return Json::array({{{"type", "text"}, {"text", words}}}); }
  Json text(const char* words) const { return taste.typed_content ? typed(words) : Json(words); }
  Json first_message() const { return {{"role", "user"}, {"content", text("Hello")}}; }
  Json conversation(Json before_user) const { return Json::array({std::move(before_user), first_message()}); }

  bool shows(const char* marker, const TemplateInput& input) const {
    const auto prompt = render(input, true, Json::object());
    return prompt && prompt->contains(marker);
  }

  bool wants_object_arguments() const {
    const Json arguments{{"Zkeyz", "Zvaluez"}};
    const TemplateInput input{Json::array({first_message(), call_message(arguments)}), Json::array()};
    const auto prompt = render(input, false, Json::object());
    // A Python dictionary in the prompt is an object where a string was expected.
    return prompt && prompt->contains("Zkeyz") && !prompt->contains("'Zkeyz'");
  }

  // A role that the template does not know comes out like one that it knows.
  Result<void> check_roles(const TemplateInput& input, const std::string& prompt, bool add_generation_prompt,
                           const Json& extra) const {
    for (const std::string& role : special_roles(input)) {
      for (const char* plain : {"user", "assistant"}) {
        TemplateInput other = input;
        for (Json& message : other.messages) {
          if (message.at("role") == role) message["role"] = plain;
        }
        const auto rendered = render(other, add_generation_prompt, extra);
        if (rendered && *rendered == prompt) return left_out("the role of a message", "messages");
      }
    }
    return {};
  }

  bool is_proven(const std::string& form) {
    const std::lock_guard lock(mutex);
    return proven.contains(form);
  }

  void remember(const std::string& form) {
    const std::lock_guard lock(mutex);
    if (proven.size() >= most_remembered) proven.clear();
    proven.insert(form);
  }
};

ChatTemplate::ChatTemplate(std::unique_ptr<State> state) : state_(std::move(state)) {}

ChatTemplate::~ChatTemplate() = default;

Result<std::unique_ptr<ChatTemplate>> ChatTemplate::parse(std::string_view source, std::string_view beginning_token,
                                                          std::string_view end_token) {
  auto jinja = Jinja::parse(source);
  if (!jinja) return std::unexpected(jinja.error());
  auto state = std::make_unique<State>(*std::move(jinja), source, beginning_token, end_token);
  return std::unique_ptr<ChatTemplate>(new ChatTemplate(std::move(state)));
}

Result<std::string> ChatTemplate::render(const Request& request, const TemplateOptions& options) const {
  const auto extra = parse_extra(options.extra_json);
  if (!extra) return std::unexpected(extra.error());
  auto input = template_input(request, state_->taste);
  if (!input) return std::unexpected(input.error());
  if (!options.with_tools) input->tools = Json::array();
  auto prompt = state_->render(*input, options.add_generation_prompt, *extra);
  if (!prompt) return prompt;
  if (auto complete = state_->check_complete(*input, *prompt, options, *extra); !complete) {
    return std::unexpected(complete.error());
  }
  return prompt;
}

bool ChatTemplate::renders_tools() const { return state_->renders_tools; }

const CallFormat* ChatTemplate::calls() const { return state_->calls; }

const std::optional<ReasoningTags>& ChatTemplate::reasoning() const { return state_->reasoning; }

}  // namespace molly::engine
