#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/request.h"
#include "training/data/teacher.h"

namespace molly::training {

enum class Part : std::uint8_t { train, held_out };

// One line of a data file.
//
//   {"messages":[...]}                                        a conversation, or a prompt where it ends with no answer
//   {"prompt_messages":[...],"chosen":{...},"rejected":{...}} a preference
//
// Messages and tools are OpenAI's. Further members: "tools", "key" (a string), "split" ("train" or "held_out"),
// "teacher" (see TeacherScores). Others are refused.
struct ChatRow {
  Request request;                // messages and tools; of a preference those of the prompt
  std::optional<Message> chosen;  // of a preference, with `rejected`
  std::optional<Message> rejected;
  std::string key;  // empty: none given
  std::optional<Part> split;
  std::optional<TeacherScores> teacher;

  bool is_preference() const { return chosen.has_value(); }
  // Whether the last message is the assistant's.
  bool is_answered() const;
};

// invalid_request names the member at fault: "messages[2].content must be a string or a list".
Result<ChatRow> parse_chat_row(std::string_view line, std::uint32_t vocabulary_size);

}  // namespace molly::training
