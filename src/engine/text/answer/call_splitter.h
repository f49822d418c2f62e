#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/answer/answer_form.h"
#include "engine/text/answer/json_scanner.h"
#include "engine/text/answer/step_match.h"

namespace molly::engine {

// Finds the calls in a text that comes in pieces. What begins like a call and is none stays content; a call whose
// arguments break off has been told by then, and the text from there on is content.
class CallSplitter {
 public:
  // `form` has a format of calls.
  explicit CallSplitter(std::shared_ptr<const AnswerForm> form);

  void append(std::string_view bytes, std::vector<AnswerPart>& parts);
  // At the end of the answer: what was held back.
  void finish(std::vector<AnswerPart>& parts);

  // The text has come to a mark, or to a name behind a beginning without one.
  bool is_in_call() const;
  // Text is held back that may become a call, or white space before one.
  bool holds_text() const { return !held_.empty(); }

 private:
  enum class State : std::uint8_t { text, head, arguments, tail };

  bool advance(std::vector<AnswerPart>& parts);
  bool pass_text(std::vector<AnswerPart>& parts);
  bool begin_call(std::size_t mark, std::vector<AnswerPart>& parts);
  bool read_head(std::vector<AnswerPart>& parts);
  bool read_arguments(std::vector<AnswerPart>& parts);
  bool read_tail(std::vector<AnswerPart>& parts);
  bool tell_call(const StepMatch& match, std::vector<AnswerPart>& parts);
  bool give_up_head(std::vector<AnswerPart>& parts);
  bool leave_call(std::size_t consumed);
  bool has_arguments_after(const StepMatch& match) const;
  void release(std::size_t bytes, std::vector<AnswerPart>& parts);
  StepMatch match(const Steps& steps) const { return match_steps(steps, held_, form_->tools); }

  std::shared_ptr<const AnswerForm> form_;
  const CallFormat& format_;
  Steps marked_head_;
  Steps last_tail_;
  Steps further_call_;  // a tail with the next call's head; empty: further calls begin with the mark
  State state_ = State::text;
  std::string held_;
  JsonScanner scanner_;
  bool is_marked_ = false;    // the head being read is
  bool is_named_ = false;     // the head being read has come past the name
  bool only_space_ = true;    // since the start, or since the last call
  bool nothing_said_ = true;  // but white space, since the start
  bool has_called_ = false;
};

}  // namespace molly::engine
