#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/request.h"
#include "engine/text/answer/answer_form.h"

namespace molly::engine {

struct TemplateOptions {
  bool add_generation_prompt = true;
  bool with_tools = true;  // false: the model is not told of the request's tools
  std::string extra_json;  // chat_template_kwargs: further variables as a JSON object; empty: none
};

// A model's own Jinja template, rendered by minja. Thread-safe.
class ChatTemplate {
 public:
  // invalid_request when the template does not parse.
  static Result<std::unique_ptr<ChatTemplate>> parse(std::string_view source, std::string_view beginning_token,
                                                     std::string_view end_token);
  ~ChatTemplate();

  // The prompt's text. invalid_request when the template raises an error, or would leave out a message, a role or tools
  // of the request: what it cannot render is an error, never dropped.
  Result<std::string> render(const Request& request, const TemplateOptions& options) const;
  bool renders_tools() const;
  // How the model writes calls of tools; null where the template renders no tools or the form is not known.
  const CallFormat* calls() const;
  // The tags around the model's reasoning, where it has any.
  const std::optional<ReasoningTags>& reasoning() const;

 private:
  struct State;
  explicit ChatTemplate(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace molly::engine
