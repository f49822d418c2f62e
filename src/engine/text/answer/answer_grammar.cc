#include "engine/text/answer/answer_grammar.h"

#include <algorithm>
#include <format>
#include <set>
#include <span>

#include "base/json_writer.h"
#include "engine/text/grammar_rules.h"
#include "engine/text/schema_grammar.h"

namespace molly::engine {
namespace {

constexpr std::string_view break_between = "[ \\n]{0,4}";  // models put up to two line breaks behind their reasoning

// One character of a class, spelled so that no character means anything else.
std::string class_member(char c) { return std::format("\\x{:02X}", static_cast<unsigned char>(c)); }

// How many bytes of `word` still match after `matched` of them and then `c` (Knuth, Morris, Pratt 1977).
std::size_t next_match(std::string_view word, std::size_t matched, char c) {
  const std::string text = std::string(word.substr(0, matched)) + c;
  std::size_t length = std::min(text.size(), word.size());
  while (!text.ends_with(word.substr(0, length))) --length;
  return length;
}

// Any text up to and with the first `close`.
std::string text_until(GrammarRules& rules, std::string_view close) {
  std::vector<std::string> names;
  names.reserve(close.size());
  for (std::size_t matched = 0; matched < close.size(); ++matched) names.push_back(rules.reserve("thought"));
  const std::set<char> letters(close.begin(), close.end());
  std::string others = "[^";
  for (const char c : letters) others += class_member(c);
  others += "] " + names[0];
  for (std::size_t matched = 0; matched < close.size(); ++matched) {
    std::string body = others;
    for (const char c : letters) {
      const std::size_t next = next_match(close, matched, c);
      body += " | " + grammar_literal(std::string(1, c)) + (next < close.size() ? " " + names[next] : "");
    }
    rules.define(names[matched], std::move(body));
  }
  return names[0];
}

std::string reasoning_first(GrammarRules& rules, const AnswerForm& form) {
  if (!form.reasoning || form.reasoning_start == ReasoningStart::closed) return {};
  const std::string thought = text_until(rules, form.reasoning->close) + " " + std::string(break_between) + " ";
  if (form.reasoning_start == ReasoningStart::opened) return thought;
  return std::format("({} {})? ", grammar_literal(form.reasoning->open), thought);
}

Result<std::string> schema_symbol(GrammarRules& rules, const std::string& schema, std::string_view rule) {
  const auto root = parse_json(schema);
  if (!root) return std::unexpected(root.error());
  return SchemaGrammar(*root, rules).symbol(rule);
}

// An empty schema, or one of annotations only, says nothing about the arguments but that they are an object.
Result<std::string> object_symbol(GrammarRules& rules, const CallableTool& tool) {
  const auto root = parse_json(tool.parameters);
  if (!root) return std::unexpected(root.error());
  const JsonValue* type = root->find("type");
  if (type != nullptr && type->text != "object") {
    return failure(ErrorCode::invalid_request, "must be object: arguments are one", "type");
  }
  auto symbol = schema_symbol(rules, tool.parameters, "arguments");
  if (symbol && *symbol == "value") return rules.json("object");
  return symbol;
}

Error at_field(Error error, const std::string& field) {
  error.message = std::format("{}{}{} {}", field, error.field.empty() ? "" : ".", error.field, error.message);
  error.field = field;
  return error;
}

Result<std::string> arguments_symbol(GrammarRules& rules, const CallableTool& tool) {
  if (tool.parameters.empty()) return std::format(R"("{{" {} "}}")", rules.json("ws"));
  GrammarRules with_schema = rules;
  auto symbol = object_symbol(with_schema, tool);
  if (symbol) {
    rules = std::move(with_schema);
    return symbol;
  }
  if (tool.strict) return std::unexpected(at_field(std::move(symbol.error()), tool.field));
  return rules.json("object");
}

std::string spelled(GrammarRules& rules, const Steps& steps, const std::string& tool) {
  std::string text;
  for (const Step& step : steps) {
    switch (step.kind) {
      case Step::Kind::space: text += rules.json("ws"); break;
      case Step::Kind::text: text += grammar_literal(step.text); break;
      case Step::Kind::quoted_name: text += grammar_literal(base::json_string(tool)); break;
      case Step::Kind::plain_name: text += grammar_literal(tool); break;
      case Step::Kind::word: text += "[a-zA-Z0-9]{1,40}"; break;
      case Step::Kind::optional: text += "(" + spelled(rules, step.group, tool) + ")?"; break;
    }
    text += ' ';
  }
  return text;
}

Result<std::string> one_call(GrammarRules& rules, const CallFormat& format, std::span<const CallableTool> tools) {
  std::string alternatives;
  for (const CallableTool& tool : tools) {
    const auto arguments = arguments_symbol(rules, tool);
    if (!arguments) return arguments;
    alternatives += alternatives.empty() ? "" : " | ";
    alternatives += spelled(rules, format.head, tool.name) + *arguments + " " + spelled(rules, format.tail, tool.name);
  }
  return rules.add("call", alternatives);
}

Result<std::string> calls_symbol(GrammarRules& rules, const AnswerForm& form, const AnswerRules& wanted) {
  const CallFormat& format = *form.calls;
  const auto call = one_call(rules, format, wanted.callable);
  if (!call) return call;
  const std::string mark = grammar_literal(format.mark) + (format.may_lack_mark ? "? " : " ");
  const std::string begin = mark + spelled(rules, format.opening, {});
  const std::string end = " " + spelled(rules, format.closing, {});
  const bool several = wanted.several_calls && format.several;
  if (!format.separator.empty()) {
    const std::string more = several ? std::format(" ({}{})*", spelled(rules, format.separator, {}), *call) : "";
    return rules.add("calls", begin + *call + more + end);
  }
  const std::string more = several ? std::format(" ({} {}{}{})*", rules.json("ws"), begin, *call, end) : "";
  return rules.add("calls", begin + *call + end + more);
}

Result<std::string> content_symbol(GrammarRules& rules, const std::string& schema) {
  auto symbol = schema_symbol(rules, schema, "answer");
  if (!symbol) symbol.error().field = "response_format";
  return symbol;
}

}  // namespace

Result<std::string> answer_grammar(const AnswerForm& form, const AnswerRules& wanted) {
  GrammarRules rules;
  std::string body;
  if (form.calls != nullptr && !wanted.callable.empty()) {
    const auto calls = calls_symbol(rules, form, wanted);
    if (!calls) return calls;
    body = *calls;
  }
  if (wanted.response_schema) {
    const auto content = content_symbol(rules, *wanted.response_schema);
    if (!content) return content;
    body += (body.empty() ? "" : " | ") + *content;
  }
  if (body.empty()) return body;
  const std::string reasoning = reasoning_first(rules, form);
  rules.add("root", reasoning.empty() ? body : std::format("{}({})", reasoning, body));
  return rules.text();
}

Result<std::string> calls_grammar(const AnswerForm& form, const AnswerRules& wanted) {
  GrammarRules rules;
  const auto calls = calls_symbol(rules, form, wanted);
  if (!calls) return calls;
  rules.add("root", *calls);
  return rules.text();
}

}  // namespace molly::engine
