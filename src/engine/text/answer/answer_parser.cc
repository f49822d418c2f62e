#include "engine/text/answer/answer_parser.h"

namespace molly::engine {

AnswerParser::AnswerParser(const std::shared_ptr<const AnswerForm>& form) {
  if (form->reasoning) reasoning_.emplace(*form->reasoning, form->reasoning_start);
  if (form->calls != nullptr) calls_.emplace(form);
}

std::vector<AnswerPart> AnswerParser::append(std::string_view bytes) {
  std::vector<AnswerPart> parts;
  if (reasoning_) {
    add(reasoning_->append(bytes), parts);
  } else {
    add_answer(bytes, parts);
  }
  return parts;
}

std::vector<AnswerPart> AnswerParser::finish() {
  std::vector<AnswerPart> parts;
  if (reasoning_) add(reasoning_->finish(), parts);
  if (calls_) calls_->finish(parts);
  return parts;
}

void AnswerParser::add(const ReasoningSplitter::Split& split, std::vector<AnswerPart>& parts) {
  if (!split.reasoning.empty()) parts.push_back({AnswerPart::Kind::reasoning, split.reasoning});
  add_answer(split.answer, parts);
}

void AnswerParser::add_answer(std::string_view text, std::vector<AnswerPart>& parts) {
  if (calls_) return calls_->append(text, parts);
  if (!text.empty()) parts.push_back({AnswerPart::Kind::content, std::string(text)});
}

}  // namespace molly::engine
