#include "engine/text/jinja.h"

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <exception>
#include <minja/minja.hpp>
#include <stdexcept>

#include "engine/text/template_bounds.h"

namespace molly::engine {
namespace {

constexpr std::size_t longest_sentence = 400;
constexpr std::int64_t widest_indent = 16;

std::unexpected<Error> refuse(std::string sentence, std::string field) {
  return failure(ErrorCode::invalid_request, std::move(sentence), std::move(field));
}

std::string first_line(std::string_view text) {
  return std::string(text.substr(0, std::min({text.find('\n'), text.find(" at row "), longest_sentence})));
}

std::string time_now(const std::string& format) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[256];
  return std::string(text, std::strftime(text, sizeof text, format.c_str(), &local));
}

minja::Value raising(std::string& sentence) {
  return minja::Value::callable([&sentence](const std::shared_ptr<minja::Context>&, minja::ArgumentsValue& arguments) {
    if (!arguments.args.empty()) sentence = arguments.args.front().to_str();
    if (sentence.empty()) sentence = "it gives no reason";
    throw std::runtime_error("raised");
    return minja::Value();
  });
}

void new_line(std::string& text, int indent, int depth) {
  if (indent < 0) return;
  text += '\n' + std::string(static_cast<std::size_t>(indent) * static_cast<std::size_t>(depth), ' ');
}

// As Python's json.dumps writes it.
void write_json(const Json& value, int indent, int depth, std::string& text) {
  if (!value.is_structured() || value.empty()) {
    text += value.dump(-1, ' ', false, Json::error_handler_t::replace);
    return;
  }
  const char* separator = indent < 0 ? ", " : ",";
  text += value.is_object() ? '{' : '[';
  bool first = true;
  for (const auto& [name, element] : value.items()) {
    if (!first) text += separator;
    first = false;
    new_line(text, indent, depth + 1);
    if (value.is_object()) text += Json(name).dump(-1, ' ', false, Json::error_handler_t::replace) + ": ";
    write_json(element, indent, depth + 1, text);
  }
  new_line(text, indent, depth);
  text += value.is_object() ? '}' : ']';
}

// minja's own breaks a line within {} when it indents.
minja::Value tojson() {
  return minja::Value::callable([](const std::shared_ptr<minja::Context>&, minja::ArgumentsValue& arguments) {
    std::int64_t indent = -1;
    if (arguments.args.size() > 1) indent = arguments.args[1].get<std::int64_t>();
    for (const auto& [name, value] : arguments.kwargs) {
      if (name != "indent" && name != "ensure_ascii") throw std::runtime_error("tojson has no option " + name);
      if (name == "indent" && !value.is_null()) indent = value.get<std::int64_t>();
    }
    std::string text;
    write_json(arguments.args.at(0).get<Json>(), static_cast<int>(std::clamp<std::int64_t>(indent, -1, widest_indent)),
               0, text);
    return minja::Value(text);
  });
}

minja::Value strftime_now() {
  return minja::Value::callable([](const std::shared_ptr<minja::Context>&, minja::ArgumentsValue& arguments) {
    arguments.expectArgs("strftime_now", {1, 1}, {0, 0});
    return minja::Value(time_now(arguments.args.front().get<std::string>()));
  });
}

}  // namespace

struct Jinja::Root {
  std::shared_ptr<minja::TemplateNode> node;
};

Result<Jinja> Jinja::parse(std::string_view source) {
  if (!is_within_template_bounds(source))
    return refuse("the chat template is longer or deeper than is supported", "chat_template");
  try {
    const minja::Options options{.trim_blocks = true, .lstrip_blocks = true, .keep_trailing_newline = false};
    return Jinja(std::make_shared<Root>(minja::Parser::parse(std::string(source), options)));
  } catch (const std::exception& problem) {
    return refuse("the chat template does not parse: " + first_line(problem.what()), "chat_template");
  }
}

Result<std::string> Jinja::render(const Json& variables) const {
  std::string raised;
  try {
    const auto context = minja::Context::make(minja::Value(variables));
    context->set("raise_exception", raising(raised));
    context->set("strftime_now", strftime_now());
    context->set("tojson", tojson());
    if (!variables.contains("date_string")) context->set("date_string", time_now("%d %b %Y"));
    if (!variables.contains("datetime")) context->set("datetime", time_now("%b %d %Y"));
    return root_->node->render(context);
  } catch (const std::exception&) {
    if (raised.empty()) return refuse("the model's chat template cannot render these messages", "messages");
    return refuse("the model's chat template refuses these messages: " + raised.substr(0, longest_sentence),
                  "messages");
  }
}

}  // namespace molly::engine
