#include "engine/text/answer/call_splitter.h"

#include <utility>

#include "engine/text/partial_text.h"

namespace molly::engine {
namespace {

constexpr std::size_t longest_head = 4096;

void add(std::vector<AnswerPart>& parts, AnswerPart::Kind kind, std::string_view text) {
  if (text.empty()) return;
  const bool continues = !parts.empty() && parts.back().kind == kind && kind != AnswerPart::Kind::call;
  if (continues) {
    parts.back().text += text;
  } else {
    parts.push_back({kind, std::string(text)});
  }
}

}  // namespace

CallSplitter::CallSplitter(std::shared_ptr<const AnswerForm> form)
    : form_(std::move(form)),
      format_(*form_->calls),
      marked_head_(joined({{exactly(format_.mark)}, format_.opening, format_.head})),
      last_tail_(joined({format_.tail, format_.closing})) {
  if (!format_.separator.empty()) further_call_ = joined({format_.tail, format_.separator, format_.head});
}

void CallSplitter::append(std::string_view bytes, std::vector<AnswerPart>& parts) {
  held_ += bytes;
  while (advance(parts)) {
  }
}

// Says whether there is more to do with the text at hand.
bool CallSplitter::advance(std::vector<AnswerPart>& parts) {
  switch (state_) {
    case State::text: return pass_text(parts);
    case State::head: return read_head(parts);
    case State::arguments: return read_arguments(parts);
    case State::tail: break;
  }
  return read_tail(parts);
}

bool CallSplitter::pass_text(std::vector<AnswerPart>& parts) {
  const std::size_t first = held_.find_first_not_of(white_space);
  if (only_space_ && first == std::string::npos) return false;
  if (format_.may_lack_mark && nothing_said_ && held_[first] == '{') return begin_call(std::string::npos, parts);
  const std::size_t mark = held_.find(format_.mark);
  if (mark != std::string::npos) return begin_call(mark, parts);
  const std::size_t keep = possible_beginning(held_, format_.mark);
  if (!only_space_ || first < held_.size() - keep) release(held_.size() - keep, parts);
  return false;
}

bool CallSplitter::begin_call(std::size_t mark, std::vector<AnswerPart>& parts) {
  is_marked_ = mark != std::string::npos;
  is_named_ = false;
  if (is_marked_) {
    const bool is_space_before = only_space_ && is_blank(std::string_view(held_).substr(0, mark));
    is_space_before ? void(held_.erase(0, mark)) : release(mark, parts);
  }
  state_ = State::head;
  return true;
}

bool CallSplitter::has_arguments_after(const StepMatch& match) const {
  return match.is_whole() && match.length < held_.size() && held_[match.length] == '{';
}

bool CallSplitter::read_head(std::vector<AnswerPart>& parts) {
  const StepMatch found = match(is_marked_ ? marked_head_ : format_.head);
  if (has_arguments_after(found)) return tell_call(found, parts);
  is_named_ = found.tool != nullptr;
  const bool may_go_on = found.is_partial() || (found.is_whole() && found.length == held_.size());
  return may_go_on && held_.size() < longest_head ? false : give_up_head(parts);
}

bool CallSplitter::give_up_head(std::vector<AnswerPart>& parts) {
  state_ = State::text;
  is_named_ = false;
  nothing_said_ = false;
  only_space_ = false;
  if (is_marked_) release(format_.mark.size(), parts);
  return true;
}

bool CallSplitter::tell_call(const StepMatch& match, std::vector<AnswerPart>& parts) {
  add(parts, AnswerPart::Kind::call, *match.tool);
  held_.erase(0, match.length);
  scanner_ = {};
  has_called_ = true;
  nothing_said_ = false;
  state_ = State::arguments;
  return true;
}

bool CallSplitter::read_arguments(std::vector<AnswerPart>& parts) {
  const std::size_t bytes = scanner_.append(held_);
  add(parts, AnswerPart::Kind::arguments, std::string_view(held_).substr(0, bytes));
  held_.erase(0, bytes);
  if (scanner_.state() == JsonScanner::State::open) return false;
  state_ = scanner_.state() == JsonScanner::State::complete ? State::tail : State::text;
  only_space_ = false;
  return true;
}

bool CallSplitter::read_tail(std::vector<AnswerPart>& parts) {
  const StepMatch last = match(last_tail_);
  if (last.is_whole()) return leave_call(last.length);
  const StepMatch further = further_call_.empty() ? StepMatch{} : match(further_call_);
  if (has_arguments_after(further)) return tell_call(further, parts);
  const bool waits_for_arguments = further.is_whole() && further.length == held_.size();
  const bool may_go_on = last.is_partial() || further.is_partial() || waits_for_arguments;
  if (may_go_on && held_.size() < longest_head) return false;
  only_space_ = false;
  state_ = State::text;
  return true;
}

bool CallSplitter::leave_call(std::size_t consumed) {
  held_.erase(0, consumed);
  only_space_ = true;
  state_ = State::text;
  return !held_.empty();
}

void CallSplitter::release(std::size_t bytes, std::vector<AnswerPart>& parts) {
  add(parts, AnswerPart::Kind::content, std::string_view(held_).substr(0, bytes));
  if (!is_blank(std::string_view(held_).substr(0, bytes))) only_space_ = nothing_said_ = false;
  held_.erase(0, bytes);
}

void CallSplitter::finish(std::vector<AnswerPart>& parts) {
  const bool is_frame = state_ == State::tail || (state_ == State::text && has_called_ && is_blank(held_));
  if (!is_frame) release(held_.size(), parts);
  held_.clear();
}

bool CallSplitter::is_in_call() const {
  if (state_ == State::text) return false;
  return state_ != State::head || is_marked_ || is_named_;
}

}  // namespace molly::engine
