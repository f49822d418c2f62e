#pragma once

#include <string>
#include <vector>

#include "engine/text/answer/answer_form.h"
#include "engine/text/vocabulary.h"

namespace molly::engine {

// The text of tokens in an answer of some form: special tokens vanish, but for those that are its tags and marks.
class TokenText {
 public:
  // `vocabulary` must outlive this.
  TokenText(const Vocabulary& vocabulary, const AnswerForm& form);

  std::string operator()(Token token) const;

 private:
  const Vocabulary* vocabulary_;
  std::vector<Token> shown_;
};

}  // namespace molly::engine
