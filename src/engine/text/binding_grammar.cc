#include "engine/text/binding_grammar.h"

#include <array>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

namespace molly::engine {
namespace {

constexpr std::string_view beginning_without_mark = R"(\{)";

std::string escaped_for_regex(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (std::string_view(R"(\^$.|?*+()[]{}-)").contains(c)) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

}  // namespace

std::unique_ptr<BindingGrammar> BindingGrammar::from_start(const Vocabulary& vocabulary, const std::string& grammar) {
  OwnedSampler sampler = make_grammar(vocabulary, grammar);
  if (!sampler) return nullptr;
  return std::unique_ptr<BindingGrammar>(new BindingGrammar(std::move(sampler)));
}

std::unique_ptr<BindingGrammar> BindingGrammar::from_call(const Vocabulary& vocabulary, const std::string& grammar,
                                                          const std::shared_ptr<const AnswerForm>& form) {
  std::vector<std::string> patterns{escaped_for_regex(form->calls->mark)};
  if (form->calls->may_lack_mark) patterns.emplace_back(beginning_without_mark);
  OwnedSampler sampler = make_lazy_grammar(vocabulary, grammar, patterns);
  if (!sampler) return nullptr;
  auto made = std::unique_ptr<BindingGrammar>(new BindingGrammar(std::move(sampler)));
  made->waiting_.emplace(Waiting{TokenText(vocabulary, *form), AnswerParser(form), {}});
  return made;
}

bool BindingGrammar::allows(Token token) const {
  if (waiting_) return !begins_call(token) || after_beginning(token) != nullptr;
  llama_token_data one{token, 1.0F, 0.0F};
  llama_token_data_array list{&one, 1, -1, false};
  apply(list);
  return one.logit > -std::numeric_limits<float>::infinity();
}

bool BindingGrammar::begins_call(Token token) const {
  AnswerParser answer = waiting_->answer;
  answer.append(waiting_->text(token));
  return answer.is_in_call();
}

// The grammar after the recent tokens and this one, which holds the end of a call's beginning; null when it does not
// allow what they say behind it. libllama finds the beginning by the pattern, and throws at what it does not allow.
OwnedSampler BindingGrammar::after_beginning(Token token) const {
  OwnedSampler begun(::llama_sampler_clone(sampler_.get()));
  try {
    for (const Token recent : waiting_->recent) ::llama_sampler_accept(begun.get(), recent);
    ::llama_sampler_accept(begun.get(), token);
  } catch (const std::exception&) {
    return nullptr;
  }
  return begun;
}

void BindingGrammar::accept(Token token) {
  if (!waiting_) return ::llama_sampler_accept(sampler_.get(), token);
  if (begins_call(token)) {
    if (OwnedSampler begun = after_beginning(token)) sampler_ = std::move(begun);
    waiting_.reset();
    return;
  }
  waiting_->answer.append(waiting_->text(token));
  waiting_->recent.push_back(token);
  if (!waiting_->answer.holds_text()) waiting_->recent.clear();
}

}  // namespace molly::engine
