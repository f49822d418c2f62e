#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/event.h"
#include "engine/service/text_stream.h"
#include "engine/text/answer/answer_parser.h"

namespace molly::engine {

// A part of an answer that may be sent.
struct AnswerDelta {
  std::string content;
  std::string reasoning;
  std::vector<ToolCallDelta> calls;

  bool is_empty() const { return content.empty() && reasoning.empty() && calls.empty(); }
};

// Turns the text of an answer's tokens into what may be sent: whole UTF-8 characters, reasoning and calls apart from
// the content, nothing of a stop string. Stop strings are looked for in the content only.
class AnswerStream {
 public:
  AnswerStream(const std::shared_ptr<const AnswerForm>& form, std::vector<std::string> stops);

  AnswerDelta append(std::string_view piece);
  // At the end of the answer: what was held back.
  AnswerDelta finish();
  // A stop string was found.
  bool stopped() const { return content_.stopped(); }

 private:
  void add(const AnswerPart& part, AnswerDelta& delta);
  void begin_call(const std::string& name, AnswerDelta& delta);
  void add_arguments(const std::string& json, AnswerDelta& delta);

  AnswerParser parser_;
  TextStream content_;
  TextStream reasoning_{{}};
  TextStream arguments_{{}};
  bool has_short_ids_;
  std::uint32_t calls_ = 0;
};

}  // namespace molly::engine
