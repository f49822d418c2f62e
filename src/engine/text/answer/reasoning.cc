#include "engine/text/answer/reasoning.h"

#include <algorithm>
#include <utility>

#include "engine/text/partial_text.h"

namespace molly::engine {
namespace {

std::string_view without_space_behind(std::string_view text) {
  return text.substr(0, text.find_last_not_of(white_space) + 1);
}

std::string_view without_space_before(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(white_space), text.size()));
}

}  // namespace

std::optional<ReasoningTags> reasoning_tags(std::string_view chat_template) {
  for (const auto& [open, close] : {std::pair{"<think>", "</think>"}, std::pair{"[THINK]", "[/THINK]"}}) {
    if (chat_template.contains(open) || chat_template.contains(close)) return ReasoningTags{open, close};
  }
  return std::nullopt;
}

ReasoningStart reasoning_start(const ReasoningTags& tags, std::string_view prompt) {
  const std::string_view written = without_space_behind(prompt);
  if (written.ends_with(tags.open)) return ReasoningStart::opened;
  return written.ends_with(tags.close) ? ReasoningStart::closed : ReasoningStart::possible;
}

ReasoningSplitter::ReasoningSplitter(ReasoningTags tags, ReasoningStart start)
    : tags_(std::move(tags)),
      state_(start == ReasoningStart::opened   ? State::reasoning
             : start == ReasoningStart::closed ? State::answer
                                               : State::before) {}

ReasoningSplitter::Split ReasoningSplitter::append(std::string_view bytes) {
  Split split;
  held_ += bytes;
  if (state_ == State::before) look_for_reasoning();
  if (state_ == State::reasoning) reason(split);
  if (state_ == State::gap) {
    held_ = without_space_before(held_);
    if (!held_.empty()) state_ = State::answer;
  }
  if (state_ == State::answer) split.answer = std::exchange(held_, {});
  return split;
}

void ReasoningSplitter::look_for_reasoning() {
  const std::string_view begun = without_space_before(held_);
  if (begun.starts_with(tags_.open)) {
    held_ = begun.substr(tags_.open.size());
    state_ = State::reasoning;
  } else if (!std::string_view(tags_.open).starts_with(begun)) {
    state_ = State::answer;
  }
}

void ReasoningSplitter::reason(Split& split) {
  const std::size_t close = held_.find(tags_.close);
  if (close != std::string::npos) {
    tell_reasoning(without_space_behind(std::string_view(held_).substr(0, close)).size(), split);
    held_.erase(0, held_.find(tags_.close) + tags_.close.size());
    state_ = State::gap;
    return;
  }
  const std::size_t sure = held_.size() - possible_beginning(held_, tags_.close);
  tell_reasoning(without_space_behind(std::string_view(held_).substr(0, sure)).size(), split);
}

void ReasoningSplitter::tell_reasoning(std::size_t bytes, Split& split) {
  const std::string_view text = std::string_view(held_).substr(0, bytes);
  split.reasoning += has_reasoned_ ? text : without_space_before(text);
  has_reasoned_ = has_reasoned_ || !text.empty();
  held_.erase(0, bytes);
}

ReasoningSplitter::Split ReasoningSplitter::finish() {
  Split split;
  if (state_ == State::reasoning) {
    tell_reasoning(without_space_behind(held_).size(), split);
  } else if (state_ == State::before) {
    split.answer = held_;
  }
  held_.clear();
  return split;
}

}  // namespace molly::engine
