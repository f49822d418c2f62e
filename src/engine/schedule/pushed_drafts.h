#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/schedule/draft_source.h"

namespace molly::engine {

// Guesses that come from outside while an answer is made: whoever reads the answer's tokens and has a faster model with
// the same vocabulary sends what that says comes next. Nobody waits for them; late ones are used as far as they agree
// with what was generated meanwhile.
class PushedDrafts : public DraftSource {
 public:
  static constexpr std::size_t most_tokens = 256;  // kept for one sequence

  // A channel belongs to one sequence at a time. False when it is taken.
  bool open(std::string_view channel, GenerationId sequence);
  // `position`: of tokens[0] in the whole sequence, prompt included. What is known from there on is replaced. Ignored
  // for a channel that is not open: its sequence may just have ended.
  void push(std::string_view channel, std::uint32_t position, std::span<const Token> tokens);

  std::vector<std::vector<Token>> draft(std::span<const DraftWish> wishes) override;
  void forget(GenerationId sequence) override;

 private:
  struct Channel {
    GenerationId sequence = 0;
    std::uint32_t position = 0;
    std::vector<Token> tokens;
  };
  static std::vector<Token> take(Channel& channel, const DraftWish& wish);

  std::map<std::string, Channel, std::less<>> channels_;
};

}  // namespace molly::engine
