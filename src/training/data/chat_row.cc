#include "training/data/chat_row.h"

#include <array>
#include <format>

#include "wire/json_reader.h"
#include "wire/openai.h"

namespace molly::training {
namespace {

using wire::JsonReader;

// The members as they are spelled; empty: absent.
struct Members {
  std::string_view messages;
  std::string_view prompt_messages;
  std::string_view chosen;
  std::string_view rejected;
  std::string_view tools;
};

std::unexpected<Error> refuse(std::string path, std::string_view what) {
  std::string sentence = path.empty() ? std::string(what) : path + " " + std::string(what);
  return failure(ErrorCode::invalid_request, std::move(sentence), std::move(path));
}

std::string_view* raw_member(Members& members, std::string_view key) {
  if (key == "messages") return &members.messages;
  if (key == "prompt_messages") return &members.prompt_messages;
  if (key == "chosen") return &members.chosen;
  if (key == "rejected") return &members.rejected;
  if (key == "tools") return &members.tools;
  return nullptr;
}

void read_split(JsonReader& in, ChatRow& row) {
  const std::string name = in.string();
  if (name == "train") {
    row.split = Part::train;
  } else if (name == "held_out") {
    row.split = Part::held_out;
  } else {
    in.fail("must be 'train' or 'held_out'");
  }
}

void read_member(JsonReader& in, std::string_view key, Members& members, ChatRow& row, std::uint32_t vocabulary_size) {
  if (std::string_view* raw = raw_member(members, key)) {
    if (!raw->empty()) return in.fail("is given twice");
    *raw = in.raw();
  } else if (key == "key") {
    if (!row.key.empty()) return in.fail("is given twice");
    row.key = in.string();
    if (in.ok() && row.key.empty()) in.fail("must not be empty");
  } else if (key == "split") {
    if (row.split) return in.fail("is given twice");
    read_split(in, row);
  } else if (key == "teacher") {
    if (row.teacher) return in.fail("is given twice");
    row.teacher = read_teacher_scores(in, vocabulary_size);
  } else {
    in.fail("is not a member of a row");
  }
}

// The dialect's own parser reads the messages; its errors then name the members of the row.
Result<Request> parse_messages(std::string_view list, std::string_view tools, std::string_view name) {
  std::string body = std::format(R"({{"messages":{})", list);
  if (!tools.empty()) body += std::format(R"(,"tools":{})", tools);
  auto request = wire::parse_chat_request(body + "}");
  if (request) return request;
  Error error = request.error();
  constexpr std::string_view spelled = "messages";
  const auto rename = [&](std::string& text) {
    if (text.starts_with(spelled)) text.replace(0, spelled.size(), name);
  };
  rename(error.message);
  rename(error.field);
  return std::unexpected(std::move(error));
}

Result<Message> parse_answer(std::string_view message, std::string_view name) {
  auto request = parse_messages(std::format("[{}]", message), {}, name);
  if (!request) return std::unexpected(request.error());
  if (request->messages.front().role != Role::assistant) {
    return refuse(std::string(name) + ".role", "must be 'assistant'");
  }
  return std::move(request->messages.front());
}

Result<ChatRow> finish_conversation(const Members& members, ChatRow row) {
  if (!members.chosen.empty() || !members.rejected.empty() || !members.prompt_messages.empty()) {
    return refuse("messages", "cannot be given with prompt_messages, chosen and rejected");
  }
  auto request = parse_messages(members.messages, members.tools, "messages");
  if (!request) return std::unexpected(request.error());
  row.request = *std::move(request);
  if (row.request.messages.empty()) return refuse("messages", "must not be empty");
  return row;
}

Result<ChatRow> finish_preference(const Members& members, ChatRow row) {
  if (members.prompt_messages.empty()) return refuse("messages", "is required");
  if (members.chosen.empty()) return refuse("chosen", "is required beside prompt_messages");
  if (members.rejected.empty()) return refuse("rejected", "is required beside prompt_messages");
  if (row.teacher) return refuse("teacher", "cannot be given for a preference");
  auto prompt = parse_messages(members.prompt_messages, members.tools, "prompt_messages");
  if (!prompt) return std::unexpected(prompt.error());
  row.request = *std::move(prompt);
  if (row.request.messages.empty()) return refuse("prompt_messages", "must not be empty");
  if (row.is_answered()) return refuse("prompt_messages", "must not end with the assistant's turn");
  auto chosen = parse_answer(members.chosen, "chosen");
  if (!chosen) return std::unexpected(chosen.error());
  auto rejected = parse_answer(members.rejected, "rejected");
  if (!rejected) return std::unexpected(rejected.error());
  row.chosen = *std::move(chosen);
  row.rejected = *std::move(rejected);
  return row;
}

}  // namespace

bool ChatRow::is_answered() const {
  return !request.messages.empty() && request.messages.back().role == Role::assistant;
}

Result<ChatRow> parse_chat_row(std::string_view line, std::uint32_t vocabulary_size) {
  ChatRow row;
  Members members;
  JsonReader in(line);
  in.object([&](std::string_view key) { read_member(in, key, members, row, vocabulary_size); });
  in.expect_end();
  if (!in.ok()) return refuse(in.path(), in.problem());
  if (members.messages.empty()) return finish_preference(members, std::move(row));
  return finish_conversation(members, std::move(row));
}

}  // namespace molly::training
