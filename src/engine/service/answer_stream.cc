#include "engine/service/answer_stream.h"

#include <mutex>
#include <random>

namespace molly::engine {
namespace {

constexpr std::size_t short_id = 9;
constexpr std::size_t usual_id = 24;

std::string random_word(std::size_t length) {
  static std::mutex mutex;
  static std::mt19937_64 random{std::random_device{}()};
  static constexpr std::string_view characters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  std::uniform_int_distribution<std::size_t> any(0, characters.size() - 1);
  const std::lock_guard lock(mutex);
  std::string word;
  while (word.size() < length) word += characters[any(random)];
  return word;
}

}  // namespace

AnswerStream::AnswerStream(const std::shared_ptr<const AnswerForm>& form, std::vector<std::string> stops)
    : parser_(form), content_(std::move(stops)), has_short_ids_(form->calls != nullptr && form->calls->has_short_ids) {}

AnswerDelta AnswerStream::append(std::string_view piece) {
  AnswerDelta delta;
  for (const AnswerPart& part : parser_.append(piece)) add(part, delta);
  return delta;
}

AnswerDelta AnswerStream::finish() {
  AnswerDelta delta;
  for (const AnswerPart& part : parser_.finish()) add(part, delta);
  delta.reasoning += reasoning_.finish();
  delta.content += content_.finish();
  add_arguments(arguments_.finish(), delta);
  return delta;
}

void AnswerStream::add(const AnswerPart& part, AnswerDelta& delta) {
  switch (part.kind) {
    case AnswerPart::Kind::content: delta.content += content_.append(part.text); break;
    case AnswerPart::Kind::reasoning: delta.reasoning += reasoning_.append(part.text); break;
    case AnswerPart::Kind::call: begin_call(part.text, delta); break;
    case AnswerPart::Kind::arguments: add_arguments(arguments_.append(part.text), delta); break;
  }
}

void AnswerStream::begin_call(const std::string& name, AnswerDelta& delta) {
  if (stopped()) return;
  delta.content += content_.finish();
  delta.calls.push_back({.index = calls_++,
                         .id = has_short_ids_ ? random_word(short_id) : "call_" + random_word(usual_id),
                         .kind = "function",
                         .name = name,
                         .arguments = {},
                         .extra = {},
                         .function_extra = {}});
}

void AnswerStream::add_arguments(const std::string& json, AnswerDelta& delta) {
  if (json.empty() || stopped() || calls_ == 0) return;
  if (delta.calls.empty()) delta.calls.push_back({.index = calls_ - 1});
  delta.calls.back().arguments += json;
}

}  // namespace molly::engine
