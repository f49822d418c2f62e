#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/error.h"
#include "engine/text/template_input.h"

namespace molly::engine {

// A Jinja template, parsed and rendered by minja. Thread-safe.
class Jinja {
 public:
  // invalid_request when it does not parse, or is longer or deeper than any template for chats.
  static Result<Jinja> parse(std::string_view source);

  // `variables` is an object. invalid_request when the template calls raise_exception, with its sentence, or fails
  // otherwise; then the error holds nothing of the variables.
  Result<std::string> render(const Json& variables) const;

 private:
  struct Root;
  explicit Jinja(std::shared_ptr<const Root> root) : root_(std::move(root)) {}
  std::shared_ptr<const Root> root_;
};

}  // namespace molly::engine
