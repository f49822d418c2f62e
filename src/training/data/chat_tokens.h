#pragma once

#include <string>
#include <vector>

#include "core/error.h"
#include "core/request.h"
#include "engine/text/chat_template.h"
#include "engine/text/vocabulary.h"
#include "training/data/example.h"

namespace molly::training {

// Writes conversations as tokens through the base's own chat template, and finds what the assistant wrote.
//
// What counts is what the base would generate when serving: for every turn of the assistant the text between the prompt
// (everything before it, with the generation prompt) and the same conversation with that turn, up to its end-of-turn
// token. Prompts become the tokens that they have in service.
//
// Some templates write earlier turns differently once there are later ones (Qwen3 drops their reasoning). Then each
// turn of the assistant becomes an example of its own, as the base sees it when it writes that turn.
class ChatTokens {
 public:
  // Both must outlive this.
  ChatTokens(const engine::Vocabulary& vocabulary, const engine::ChatTemplate& chat_template)
      : vocabulary_(vocabulary), template_(chat_template) {}

  // At least one example; key, origin and teacher are left empty. The conversation ends with an assistant's turn.
  // invalid_request: the template cannot render the conversation, writes a turn that does not begin with its own
  // generation prompt, or no end-of-turn token.
  Result<std::vector<Example>> conversation(const Request& request) const;
  // Nothing counts; ends with the generation prompt.
  Result<Example> prompt(const Request& request) const;
  // The text before the assistant's first turn, with the generation prompt.
  Result<std::string> first_prompt(const Request& request) const;

 private:
  struct Turn {
    std::string before;   // the prompt
    std::string through;  // begins with it
  };

  Result<std::string> render(const Request& request, std::size_t messages, bool for_generation) const;
  Result<std::vector<Turn>> turns(const Request& request) const;
  Result<void> add_turn(Example& example, const std::string& written, const Turn& turn) const;
  void extend(Example& example, std::string_view written, std::string_view text) const;

  const engine::Vocabulary& vocabulary_;
  const engine::ChatTemplate& template_;
};

}  // namespace molly::training
