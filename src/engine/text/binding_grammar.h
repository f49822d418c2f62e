#pragma once

#include <llama.h>

#include <memory>
#include <optional>
#include <vector>

#include "engine/text/answer/answer_parser.h"
#include "engine/text/sampler_chain.h"
#include "engine/text/token_text.h"

namespace molly::engine {

// A grammar over the tokens of one generation: from the first on, or from where a call of a tool begins. Before that
// it allows every token but those that would begin a call and break it at once.
class BindingGrammar {
 public:
  // Null when the grammar does not parse.
  static std::unique_ptr<BindingGrammar> from_start(const Vocabulary& vocabulary, const std::string& grammar);
  // `form` has a format of calls.
  static std::unique_ptr<BindingGrammar> from_call(const Vocabulary& vocabulary, const std::string& grammar,
                                                   const std::shared_ptr<const AnswerForm>& form);

  bool binds() const { return !waiting_; }
  bool allows(Token token) const;
  // Only when it binds: gives the logit -infinity to what it does not allow.
  void apply(llama_token_data_array& candidates) const { ::llama_sampler_apply(sampler_.get(), &candidates); }
  void accept(Token token);

 private:
  struct Waiting {
    TokenText text;
    AnswerParser answer;
    std::vector<Token> recent;  // those whose text may belong to the beginning of a call
  };

  explicit BindingGrammar(OwnedSampler sampler) : sampler_(std::move(sampler)) {}
  bool begins_call(Token token) const;
  OwnedSampler after_beginning(Token token) const;

  OwnedSampler sampler_;
  std::optional<Waiting> waiting_;
};

}  // namespace molly::engine
