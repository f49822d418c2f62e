#include "engine/text/answer/answer_grammar.h"

#include <algorithm>
#include <format>
#include <set>
#include <span>

#include "base/json_writer.h"
#include "engine/text/grammar_rules.h"
#include "engine/text/json_schema.h"
#include "engine/text/json_value.h"

namespace molly::engine {
namespace {

constexpr std::string_view break_between = "[ \\n]{0,4}";  // models put up to two line breaks behind their reasoning
constexpr int most_calls = 64;

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
  std::string thought = text_until(rules, form.reasoning->close) + " " + std::string(break_between) + " ";
  if (form.reasoning_start == ReasoningStart::opened) return thought;
  return std::format("({} {})? ", grammar_literal(form.reasoning->open), thought);
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

// Models write calls without more white space than this.
constexpr std::string_view usual_space = "[ \\n]?";

class CallGrammar {
 public:
  // `space` is the GBNF for white space around the parts of a call.
  CallGrammar(GrammarRules& rules, const CallFormat& format, std::string space)
      : rules_(rules), format_(format), space_(std::move(space)) {}

  Result<std::string> calls(const AnswerRules& wanted) {
    const auto call = one_call(wanted.callable);
    if (!call) return call;
    const std::string mark = grammar_literal(format_.mark) + (format_.may_lack_mark ? "? " : " ");
    const std::string begin = mark + spelled(format_.opening, {});
    const std::string end = " " + spelled(format_.closing, {});
    const bool several = wanted.several_calls && format_.several;
    if (!format_.separator.empty()) {
      const std::string more = several ? further(spelled(format_.separator, {}) + *call) : "";
      return rules_.add("calls", begin + *call + more + end);
    }
    const std::string more = several ? further(space_ + " " + begin + *call + end) : "";
    return rules_.add("calls", begin + *call + end + more);
  }

 private:
  static std::string further(const std::string& call) { return std::format(" ({}){{0,{}}}", call, most_calls - 1); }

  std::string spelled(const Steps& steps, const std::string& tool) const {
    std::string text;
    for (const Step& step : steps) text += spelled(step, tool) + " ";
    return text;
  }

  std::string spelled(const Step& step, const std::string& tool) const {
    switch (step.kind) {
      case Step::Kind::space: return space_;
      case Step::Kind::text: return grammar_literal(step.text);
      case Step::Kind::quoted_name: return grammar_literal(base::json_string(tool));
      case Step::Kind::plain_name: return grammar_literal(tool);
      case Step::Kind::word: return "[a-zA-Z0-9]{1,40}";
      case Step::Kind::optional: break;
    }
    return "(" + spelled(step.group, tool) + ")?";
  }

  Result<std::string> one_call(std::span<const CallableTool> tools) {
    std::string alternatives;
    for (const CallableTool& tool : tools) {
      const auto arguments = arguments_symbol(rules_, tool);
      if (!arguments) return arguments;
      if (!alternatives.empty()) alternatives += " | ";
      alternatives += spelled(format_.head, tool.name) + *arguments + " " + spelled(format_.tail, tool.name);
    }
    return rules_.add("call", alternatives);
  }

  GrammarRules& rules_;
  const CallFormat& format_;
  std::string space_;
};

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
    const auto calls = CallGrammar(rules, *form.calls, std::string(usual_space)).calls(wanted);
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
  // Where a beginning without a mark is known late, it stands already, laid out as the model likes.
  const std::string space = form.calls->may_lack_mark ? rules.json("ws") : std::string(usual_space);
  const auto calls = CallGrammar(rules, *form.calls, space).calls(wanted);
  if (!calls) return calls;
  rules.add("root", *calls);
  return rules.text();
}

}  // namespace molly::engine
