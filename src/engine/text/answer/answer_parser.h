#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/text/answer/answer_form.h"
#include "engine/text/answer/call_splitter.h"
#include "engine/text/answer/reasoning.h"

namespace molly::engine {

// Reads an answer's text, as it comes, into reasoning, content and calls of tools. The pieces may end within a
// character.
class AnswerParser {
 public:
  explicit AnswerParser(const std::shared_ptr<const AnswerForm>& form);

  std::vector<AnswerPart> append(std::string_view bytes);
  std::vector<AnswerPart> finish();

  // From where a call is sure: see CallSplitter.
  bool is_in_call() const { return calls_ && calls_->is_in_call(); }
  // What came last may become the beginning of a call.
  bool holds_text() const { return calls_ && calls_->holds_text(); }

 private:
  void add(const ReasoningSplitter::Split& split, std::vector<AnswerPart>& parts);
  void add_answer(std::string_view text, std::vector<AnswerPart>& parts);

  std::optional<ReasoningSplitter> reasoning_;
  std::optional<CallSplitter> calls_;
};

}  // namespace molly::engine
