#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/request.h"

namespace molly::engine {

struct TemplateOptions {
  bool add_generation_prompt = true;
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

 private:
  struct State;
  explicit ChatTemplate(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace molly::engine
