#include "engine/text/token_text.h"

#include <algorithm>
#include <string_view>

namespace molly::engine {

TokenText::TokenText(const Vocabulary& vocabulary, const AnswerForm& form) : vocabulary_(&vocabulary) {
  std::vector<std::string_view> texts;
  if (form.calls != nullptr) texts = form.calls->special_texts;
  if (form.reasoning) texts.insert(texts.end(), {form.reasoning->open, form.reasoning->close});
  for (const std::string_view text : texts) {
    const auto tokens = vocabulary.tokenize(text, SpecialTokens::parsed, Beginning::bare);
    if (tokens.size() == 1) shown_.push_back(tokens.front());
  }
}

std::string TokenText::operator()(Token token) const {
  const bool is_shown = std::ranges::contains(shown_, token);
  return vocabulary_->piece(token, is_shown ? SpecialTokens::parsed : SpecialTokens::as_text);
}

}  // namespace molly::engine
