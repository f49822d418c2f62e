#include "engine/text/json_schema.h"

#include "engine/text/schema_grammar.h"

namespace molly::engine {

Result<std::string> schema_symbol(GrammarRules& rules, std::string_view schema, std::string_view rule) {
  const auto root = parse_json(schema);
  if (!root) return std::unexpected(root.error());
  return SchemaGrammar(*root, rules).symbol(rule);
}

Result<std::string> grammar_of_schema(std::string_view schema) {
  GrammarRules rules;
  rules.reserve("root");
  auto symbol = schema_symbol(rules, schema, "answer");
  if (!symbol) return symbol;
  rules.define("root", *std::move(symbol));
  return rules.text();
}

}  // namespace molly::engine
