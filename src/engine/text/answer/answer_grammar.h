#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "engine/text/answer/answer_form.h"

namespace molly::engine {

struct CallableTool {
  std::string name;
  std::string parameters;  // JSON Schema; empty: it takes none
  bool strict = false;
  std::string field;  // of the request, for errors
};

struct AnswerRules {
  std::vector<CallableTool> callable;          // with form.calls
  bool several_calls = true;                   // where the format has them
  std::optional<std::string> response_schema;  // of the content
};

// GBNF for the texts of answers: reasoning, then calls of tools or a content that the schema allows; with neither,
// nothing. Arguments keep to a tool's schema; one that GBNF cannot express binds them to be an object only, and is
// invalid_request for a strict tool, as for the content.
Result<std::string> answer_grammar(const AnswerForm& form, const AnswerRules& rules);

// GBNF for calls only, from the first one's mark (or beginning without one) on.
Result<std::string> calls_grammar(const AnswerForm& form, const AnswerRules& rules);

}  // namespace molly::engine
