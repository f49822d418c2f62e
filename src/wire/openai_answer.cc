#include <algorithm>
#include <array>
#include <string>

#include "wire/json_members.h"
#include "wire/openai.h"
#include "wire/openai_upstream_error.h"

// Reading what an upstream answers, whole or in chunks. Both are one shape; only the choice's "message" and "delta"
// differ.
namespace molly::wire {
namespace {

constexpr std::uint32_t most_choices = 4096;
constexpr std::uint32_t most_tool_calls = 1024;

void skip_value(JsonReader& in, auto&) { in.skip(); }

// ---- tool calls ----

// Some upstreams give an object where the dialect wants its text.
std::string string_or_raw(JsonReader& in) {
  return in.peek() == JsonReader::Kind::string ? in.string() : std::string(in.raw());
}

void read_call_name(JsonReader& in, ToolCallDelta& call) { call.name = in.string(); }
void read_call_arguments(JsonReader& in, ToolCallDelta& call) { call.arguments = string_or_raw(in); }

constexpr std::array<Member<ToolCallDelta>, 2> function_members{{
    {"name", Rule::null_is_none, read_call_name},
    {"arguments", Rule::null_is_none, read_call_arguments},
}};

constexpr std::array<Member<ToolCallDelta>, 2> custom_members{{
    {"name", Rule::null_is_none, read_call_name},
    {"input", Rule::null_is_none, read_call_arguments},
}};

constexpr std::array<Member<ToolCallDelta>, 5> tool_call_members{{
    {"index", Rule::null_is_none,
     [](JsonReader& in, ToolCallDelta& call) {
       call.index = static_cast<std::uint32_t>(in.unsigned_integer(most_tool_calls - 1));
     }},
    {"id", Rule::null_is_none, [](JsonReader& in, ToolCallDelta& call) { call.id = in.string(); }},
    {"type", Rule::null_is_none, [](JsonReader& in, ToolCallDelta& call) { call.kind = in.string(); }},
    {"function", Rule::null_is_none,
     [](JsonReader& in, ToolCallDelta& call) { read_object(in, function_members, call, call.function_extra); }},
    {"custom", Rule::null_is_none,
     [](JsonReader& in, ToolCallDelta& call) {
       call.kind = "custom";  // later fragments do not say so
       read_object(in, custom_members, call, call.function_extra);
     }},
}};

void read_tool_calls(JsonReader& in, ChoiceDelta& choice) {
  in.array([&](std::uint32_t index) {
    if (index >= most_tool_calls) return in.fail("is one of too many tool calls");
    ToolCallDelta& call = choice.tool_calls.emplace_back();
    call.index = index;
    read_object(in, tool_call_members, call, call.extra);
  });
}

// ---- choices ----

Role parse_answer_role(std::string_view name) {
  for (const Role role : {Role::assistant, Role::tool, Role::system, Role::user, Role::developer, Role::function}) {
    if (to_string(role) == name) return role;
  }
  return Role::other;
}

constexpr std::array<Member<ChoiceDelta>, 5> message_members{{
    {"content", Rule::null_is_none, [](JsonReader& in, ChoiceDelta& choice) { choice.text = in.string(); }},
    {"role", Rule::null_is_none,
     [](JsonReader& in, ChoiceDelta& choice) { choice.role = parse_answer_role(in.string()); }},
    {"reasoning_content", Rule::null_is_none,
     [](JsonReader& in, ChoiceDelta& choice) { choice.reasoning = in.string(); }},
    {"tool_calls", Rule::null_is_none, read_tool_calls},
    {"refusal", Rule::null_is_none, [](JsonReader& in, ChoiceDelta& choice) { choice.refusal = in.string(); }},
}};

void read_message(JsonReader& in, ChoiceDelta& choice) {
  read_object(in, message_members, choice, choice.message_extra);
}

void read_index(JsonReader& in, ChoiceDelta& choice) {
  choice.index = static_cast<std::uint32_t>(in.unsigned_integer(most_choices - 1));
}

void read_logprobs(JsonReader& in, ChoiceDelta& choice) {
  if (in.peek() != JsonReader::Kind::object) return in.fail("must be an object");
  choice.logprobs = in.raw_json();
}

FinishReason parse_finish(std::string_view name) {
  if (name == "stop") return FinishReason::stop;
  if (name == "length") return FinishReason::length;
  if (name == "tool_calls") return FinishReason::tool_calls;
  if (name == "content_filter") return FinishReason::content_filter;
  if (name == "function_call") return FinishReason::function_call;
  if (name == "error") return FinishReason::error;
  return FinishReason::other;
}

void read_finish(JsonReader& in, ChoiceDelta& choice) {
  std::string name = in.string();
  choice.finish = parse_finish(name);
  if (*choice.finish == FinishReason::other) choice.finish_name = std::move(name);
}

using ChoiceMembers = std::array<Member<ChoiceDelta>, 4>;

constexpr ChoiceMembers choice_members(Member<ChoiceDelta> payload) {
  return {{
      {"index", Rule::null_is_none, read_index},
      payload,
      {"logprobs", Rule::null_is_none, read_logprobs},
      {"finish_reason", Rule::null_is_none, read_finish},
  }};
}

constexpr ChoiceMembers chunk_choice = choice_members({"delta", Rule::required, read_message});
constexpr ChoiceMembers whole_choice = choice_members({"message", Rule::required, read_message});
constexpr ChoiceMembers text_choice =
    choice_members({"text", Rule::required, [](JsonReader& in, ChoiceDelta& choice) { choice.text = in.string(); }});

// ---- usage ----

struct UsageObject {
  Usage usage;
  std::optional<std::uint64_t> total;
};

// The details objects are kept whole, and one number of each is understood.
std::optional<std::uint64_t> read_details(JsonReader& in, Usage& usage, std::string_view object,
                                          std::string_view name) {
  std::optional<std::uint64_t> number;
  const JsonReader::Mark start = in.mark();
  in.object([&](std::string_view key) {
    if (key == name && in.peek() == JsonReader::Kind::number) {
      number = in.unsigned_integer();
    } else {
      in.skip();
    }
  });
  in.rewind(start);
  usage.extra.emplace_back(std::string(object), in.raw_json());
  return number;
}

constexpr std::array<Member<UsageObject>, 5> usage_members{{
    {"prompt_tokens", Rule::null_is_none,
     [](JsonReader& in, UsageObject& object) { object.usage.prompt_tokens = in.unsigned_integer(INT64_MAX); }},
    {"completion_tokens", Rule::null_is_none,
     [](JsonReader& in, UsageObject& object) { object.usage.completion_tokens = in.unsigned_integer(INT64_MAX); }},
    {"total_tokens", Rule::null_is_none,
     [](JsonReader& in, UsageObject& object) { object.total = in.unsigned_integer(INT64_MAX); }},
    {"prompt_tokens_details", Rule::null_is_none,
     [](JsonReader& in, UsageObject& object) {
       object.usage.cached_tokens = read_details(in, object.usage, "prompt_tokens_details", "cached_tokens");
     }},
    {"completion_tokens_details", Rule::null_is_none,
     [](JsonReader& in, UsageObject& object) {
       object.usage.reasoning_tokens = read_details(in, object.usage, "completion_tokens_details", "reasoning_tokens");
     }},
}};

Usage read_usage(JsonReader& in) {
  UsageObject object;
  read_object(in, usage_members, object, object.usage.extra);
  Usage& usage = object.usage;
  if (object.total && *object.total != usage.prompt_tokens + usage.completion_tokens) {
    usage.extra.emplace_back("total_tokens", RawJson{std::to_string(*object.total)});
  }
  return std::move(usage);
}

// ---- the answer ----

struct AnswerObject {
  std::vector<Event>& events;
  const ChoiceMembers& choice_members;
  Started* started = nullptr;  // where the head goes; none: not wanted again
  bool has_choices = false;
  std::optional<Usage> usage;
  std::optional<UpstreamError> error;
};

template <auto field>
void read_head(JsonReader& in, AnswerObject& answer) {
  if (answer.started == nullptr) return in.skip();
  answer.started->*field = in.string();
}

// Whole seconds; some write a fraction.
void read_created(JsonReader& in, AnswerObject& answer) {
  const double created = in.number().value;
  const bool sensible = created >= 0 && created < 1e15;
  if (answer.started != nullptr && sensible) answer.started->created = static_cast<std::int64_t>(created);
}

void read_choices(JsonReader& in, AnswerObject& answer) {
  answer.has_choices = true;
  in.array([&](std::uint32_t index) {
    if (index >= most_choices) return in.fail("is one of too many choices");
    auto& choice = std::get<ChoiceDelta>(answer.events.emplace_back(std::in_place_type<ChoiceDelta>));
    choice.index = index;
    read_object(in, answer.choice_members, choice, choice.extra);
  });
}

constexpr std::array<Member<AnswerObject>, 8> answer_members{{
    {"choices", Rule::null_is_none, read_choices},
    {"created", Rule::null_is_none, read_created},
    {"id", Rule::null_is_none, read_head<&Started::id>},
    {"model", Rule::null_is_none, read_head<&Started::model>},
    {"system_fingerprint", Rule::null_is_none, read_head<&Started::system_fingerprint>},
    {"object", Rule::any, skip_value},
    {"usage", Rule::null_is_none, [](JsonReader& in, AnswerObject& answer) { answer.usage = read_usage(in); }},
    {"error", Rule::null_is_none, [](JsonReader& in, AnswerObject& answer) { answer.error = read_upstream_error(in); }},
}};

std::unexpected<Error> not_understood(const JsonReader& in) {
  const std::string subject = in.path().empty() ? "it" : in.path();
  return failure(ErrorCode::upstream_failed,
                 "the target's answer cannot be understood: " + subject + " " + in.problem());
}

std::unexpected<Error> without_choices() {
  return failure(ErrorCode::upstream_failed, "the target's answer cannot be understood: it has no choices");
}

Result<std::vector<Event>> parse_whole(std::string_view body, const ChoiceMembers& members) {
  std::vector<Event> events;
  Started started;
  AnswerObject answer{events, members, &started, false, {}, {}};
  events.emplace_back(Started{});
  JsonReader in(body);
  read_object(in, answer_members, answer, started.extra);
  in.expect_end();
  if (!in.ok()) return not_understood(in);
  if (answer.error) return std::unexpected(to_error(*answer.error, 0));
  if (events.size() == 1) return without_choices();
  events.front() = std::move(started);
  if (answer.usage) events.emplace_back(UsageReport{std::move(*answer.usage), {}});
  events.emplace_back(Done{});
  return events;
}

// An event named "error" holds an error object, with or without {"error":...} around it.
Result<Error> parse_error_event(std::string_view data) {
  JsonReader in(data);
  const JsonReader::Mark start = in.mark();
  std::optional<UpstreamError> error;
  in.object([&](std::string_view key) {
    if (key == "error" && !error) {
      error = read_upstream_error(in);
    } else {
      in.skip();
    }
  });
  in.expect_end();
  if (in.ok() && !error) {
    in.rewind(start);
    error = read_upstream_error(in);
  }
  if (!in.ok()) return not_understood(in);
  return to_error(*error, 0);
}

ExtraFields& answer_extra_of(std::vector<Event>& events, std::size_t first) {
  if (events.size() == first) events.emplace_back(ChoiceDelta{});
  if (auto* choice = std::get_if<ChoiceDelta>(&events[first])) return choice->answer_extra;
  return std::get<UsageReport>(events[first]).answer_extra;
}

}  // namespace

Result<std::vector<Event>> parse_chat_answer(std::string_view body) { return parse_whole(body, whole_choice); }

Result<std::vector<Event>> parse_completion_answer(std::string_view body) { return parse_whole(body, text_choice); }

Result<std::span<Event>> ChunkParser::parse(std::string_view data, std::string_view event_name) {
  events_.clear();
  if (ended_) return std::span<Event>();
  if (data == "[DONE]") {
    ended_ = true;
    events_.emplace_back(Done{});
    return std::span(events_);
  }
  if (event_name == "error") {
    Result<Error> error = parse_error_event(data);
    if (!error) return std::unexpected(std::move(error.error()));
    return end_with(std::move(*error));
  }
  return parse_chunk(data);
}

Result<std::span<Event>> ChunkParser::parse_chunk(std::string_view data) {
  Started started;
  ExtraFields extra;
  AnswerObject answer{events_, endpoint_ == Endpoint::chat ? chunk_choice : text_choice, nullptr, false, {}, {}};
  const std::size_t first = started_ ? 0 : 1;
  if (!started_) {
    answer.started = &started;
    events_.emplace_back(Started{});
  }
  JsonReader in(data);
  read_object(in, answer_members, answer, extra);
  in.expect_end();
  if (!in.ok()) return not_understood(in);
  if (answer.error) return end_with(to_error(*answer.error, 0));
  if (!answer.has_choices && !answer.usage) return without_choices();
  if (answer.usage) events_.emplace_back(UsageReport{std::move(*answer.usage), {}});
  if (!started_) {
    started.extra = std::move(extra);
    events_.front() = std::move(started);
    started_ = true;
  } else if (!extra.empty()) {
    answer_extra_of(events_, first) = std::move(extra);
  }
  count_finished();
  return std::span(events_);
}

Result<std::span<Event>> ChunkParser::end_with(Error error) {
  ended_ = true;
  events_.clear();
  events_.emplace_back(Failed{std::move(error)});
  return std::span(events_);
}

void ChunkParser::count_finished() {
  for (const Event& event : events_) {
    const auto* choice = std::get_if<ChoiceDelta>(&event);
    if (choice == nullptr || !choice->finish) continue;
    if (choice->index >= finished_.size()) finished_.resize(choice->index + 1);
    if (!finished_[choice->index] && open_choices_ > 0) --open_choices_;
    finished_[choice->index] = true;
  }
}

}  // namespace molly::wire
