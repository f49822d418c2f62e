#include "engine/text/json_schema.h"

#include "engine/text/grammar_rules.h"
#include "engine/text/schema_grammar.h"

namespace molly::engine {

Result<std::string> grammar_of_schema(std::string_view schema) {
  const auto root = parse_json(schema);
  if (!root) return std::unexpected(root.error());
  GrammarRules rules;
  rules.reserve("root");
  auto symbol = SchemaGrammar(*root, rules).symbol("answer");
  if (!symbol) return symbol;
  rules.define("root", *std::move(symbol));
  return rules.text();
}

std::string any_object_grammar() {
  GrammarRules rules;
  rules.add("root", rules.json("object"));
  return rules.text();
}

}  // namespace molly::engine
