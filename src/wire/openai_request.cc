#include <array>
#include <string>
#include <utility>

#include "wire/json_members.h"
#include "wire/json_reader.h"
#include "wire/openai.h"

// Reading requests. Each object of the dialect is one table of members; what is not in a table stays as extra.
namespace molly::wire {
namespace {

constexpr std::uint32_t most_choices = 128;
constexpr std::size_t most_answers = 4096;  // prompts times n

void skip_value(JsonReader& in, auto&) { in.skip(); }

Role parse_role(std::string_view name) {
  for (const Role role : {Role::user, Role::assistant, Role::system, Role::tool, Role::developer, Role::function}) {
    if (to_string(role) == name) return role;
  }
  return Role::other;
}

// ---- content parts ----

template <class Part>
Part& part_of(ContentPart& part) {
  return std::get<Part>(part.value);
}

constexpr std::array<Member<ContentPart>, 2> text_part_members{{
    {"type", Rule::required, skip_value},
    {"text", Rule::required, [](JsonReader& in, ContentPart& part) { part_of<TextPart>(part).text = in.string(); }},
}};

constexpr std::array<Member<ContentPart>, 2> refusal_part_members{{
    {"type", Rule::required, skip_value},
    {"refusal", Rule::required,
     [](JsonReader& in, ContentPart& part) { part_of<RefusalPart>(part).text = in.string(); }},
}};

constexpr std::array<Member<ImagePart>, 2> image_members{{
    {"url", Rule::required, [](JsonReader& in, ImagePart& image) { image.url = in.string(); }},
    {"detail", Rule::sized, [](JsonReader& in, ImagePart& image) { image.detail = in.string(); }},
}};

constexpr std::array<Member<AudioPart>, 2> audio_members{{
    {"data", Rule::required, [](JsonReader& in, AudioPart& audio) { audio.data = in.string(); }},
    {"format", Rule::sized, [](JsonReader& in, AudioPart& audio) { audio.format = in.string(); }},
}};

constexpr std::array<Member<FilePart>, 3> file_members{{
    {"file_id", Rule::sized, [](JsonReader& in, FilePart& file) { file.file_id = in.string(); }},
    {"filename", Rule::sized, [](JsonReader& in, FilePart& file) { file.filename = in.string(); }},
    {"file_data", Rule::sized, [](JsonReader& in, FilePart& file) { file.data = in.string(); }},
}};

constexpr std::array<Member<ContentPart>, 2> image_part_members{{
    {"type", Rule::required, skip_value},
    {"image_url", Rule::required,
     [](JsonReader& in, ContentPart& part) {
       read_object(in, image_members, part_of<ImagePart>(part), part.inner_extra);
     }},
}};

constexpr std::array<Member<ContentPart>, 2> audio_part_members{{
    {"type", Rule::required, skip_value},
    {"input_audio", Rule::required,
     [](JsonReader& in, ContentPart& part) {
       read_object(in, audio_members, part_of<AudioPart>(part), part.inner_extra);
     }},
}};

constexpr std::array<Member<ContentPart>, 2> file_part_members{{
    {"type", Rule::required, skip_value},
    {"file", Rule::required,
     [](JsonReader& in, ContentPart& part) {
       read_object(in, file_members, part_of<FilePart>(part), part.inner_extra);
       const FilePart& file = part_of<FilePart>(part);
       if (file.file_id.empty() && file.data.empty()) in.fail("needs a file_id or file_data");
     }},
}};

template <class Part, std::size_t N>
ContentPart read_part_as(JsonReader& in, const std::array<Member<ContentPart>, N>& members) {
  ContentPart part;
  part.value.emplace<Part>();
  read_object(in, members, part, part.extra);
  return part;
}

ContentPart read_part(JsonReader& in) {
  const std::optional<std::string> type = in.peek_string_member("type");
  if (!type) {
    in.fail_member("type", "is required");
    return {};
  }
  if (*type == "text") return read_part_as<TextPart>(in, text_part_members);
  if (*type == "image_url") return read_part_as<ImagePart>(in, image_part_members);
  if (*type == "input_audio") return read_part_as<AudioPart>(in, audio_part_members);
  if (*type == "file") return read_part_as<FilePart>(in, file_part_members);
  if (*type == "refusal") return read_part_as<RefusalPart>(in, refusal_part_members);
  return ContentPart{OpaquePart{*type, in.raw_json()}, {}, {}};
}

Content read_content(JsonReader& in) {
  Content content;
  switch (in.peek()) {
    case JsonReader::Kind::null:
      content.form = Content::Form::null;
      in.skip();
      break;
    case JsonReader::Kind::string:
      content.form = Content::Form::text;
      content.text = in.string();
      break;
    case JsonReader::Kind::array:
      content.form = Content::Form::parts;
      in.array([&](std::uint32_t) { content.parts.push_back(read_part(in)); });
      break;
    default: in.fail("must be a string, a list of parts or null");
  }
  return content;
}

// ---- tool calls in the history ----

constexpr std::array<Member<ToolCall>, 2> called_function_members{{
    {"name", Rule::required, [](JsonReader& in, ToolCall& call) { call.name = in.string(); }},
    {"arguments", Rule::required, [](JsonReader& in, ToolCall& call) { call.arguments = in.string(); }},
}};

constexpr std::array<Member<ToolCall>, 2> called_custom_members{{
    {"name", Rule::required, [](JsonReader& in, ToolCall& call) { call.name = in.string(); }},
    {"input", Rule::required, [](JsonReader& in, ToolCall& call) { call.arguments = in.string(); }},
}};

void read_call_id(JsonReader& in, ToolCall& call) { call.id = in.string(); }
void read_call_kind(JsonReader& in, ToolCall& call) { call.kind = in.string(); }

constexpr std::array<Member<ToolCall>, 3> function_call_members{{
    {"id", Rule::sized, read_call_id},
    {"type", Rule::any, read_call_kind},
    {"function", Rule::required,
     [](JsonReader& in, ToolCall& call) { read_object(in, called_function_members, call, call.function_extra); }},
}};

constexpr std::array<Member<ToolCall>, 3> custom_call_members{{
    {"id", Rule::sized, read_call_id},
    {"type", Rule::any, read_call_kind},
    {"custom", Rule::required,
     [](JsonReader& in, ToolCall& call) { read_object(in, called_custom_members, call, call.function_extra); }},
}};

ToolCall read_tool_call(JsonReader& in) {
  const std::optional<std::string> kind = in.peek_string_member("type");
  ToolCall call;
  call.kind.clear();  // a type that is not there stays away
  if (kind == "custom") {
    read_object(in, custom_call_members, call, call.extra);
  } else if (!kind || *kind == "function") {
    read_object(in, function_call_members, call, call.extra);
  } else {
    in.fail_member("type", "must be \"function\" or \"custom\"");
  }
  return call;
}

// ---- messages ----

void read_role(JsonReader& in, Message& message) {
  std::string name = in.string();
  if (name.empty()) return in.fail("must name a role");
  message.role = parse_role(name);
  if (message.role == Role::other) message.role_name = std::move(name);
}

constexpr std::array<Member<Message>, 7> message_members{{
    {"role", Rule::required, read_role},
    {"content", Rule::any, [](JsonReader& in, Message& message) { message.content = read_content(in); }},
    {"tool_calls", Rule::sized,
     [](JsonReader& in, Message& message) {
       in.array([&](std::uint32_t) { message.tool_calls.push_back(read_tool_call(in)); });
     }},
    {"tool_call_id", Rule::sized, [](JsonReader& in, Message& message) { message.tool_call_id = in.string(); }},
    {"name", Rule::sized, [](JsonReader& in, Message& message) { message.name = in.string(); }},
    {"reasoning_content", Rule::optional, [](JsonReader& in, Message& message) { message.reasoning = in.string(); }},
    {"refusal", Rule::optional, [](JsonReader& in, Message& message) { message.refusal = in.string(); }},
}};

void read_messages(JsonReader& in, Request& request) {
  if (in.peek() == JsonReader::Kind::array && in.at_empty()) return in.fail("must hold at least one message");
  in.array([&](std::uint32_t) {
    Message& message = request.messages.emplace_back();
    read_object(in, message_members, message, message.extra);
  });
}

// ---- tools ----

constexpr std::array<Member<Tool>, 4> function_members{{
    {"name", Rule::required,
     [](JsonReader& in, Tool& tool) {
       tool.name = in.string();
       if (tool.name.empty()) in.fail("must not be empty");
     }},
    {"description", Rule::sized, [](JsonReader& in, Tool& tool) { tool.description = in.string(); }},
    {"parameters", Rule::optional,
     [](JsonReader& in, Tool& tool) {
       if (in.peek() != JsonReader::Kind::object) return in.fail("must be an object");
       tool.parameters = in.raw_json();
     }},
    {"strict", Rule::optional, [](JsonReader& in, Tool& tool) { tool.strict = in.boolean(); }},
}};

constexpr std::array<Member<Tool>, 2> tool_members{{
    {"type", Rule::required, skip_value},
    {"function", Rule::required,
     [](JsonReader& in, Tool& tool) { read_object(in, function_members, tool, tool.function_extra); }},
}};

Tool read_tool(JsonReader& in) {
  Tool tool;
  const std::optional<std::string> kind = in.peek_string_member("type");
  if (!kind) {
    in.fail_member("type", "is required");
  } else if (*kind == "function") {
    read_object(in, tool_members, tool, tool.extra);
  } else {
    tool.kind = *kind;
    tool.whole = in.raw_json();
  }
  return tool;
}

constexpr std::array<Member<ToolChoice>, 1> chosen_function_members{{
    {"name", Rule::required, [](JsonReader& in, ToolChoice& choice) { choice.name = in.string(); }},
}};

// Exactly {"type":"function","function":{"name":...}} has a typed form.
void read_named_choice(JsonReader& in, ToolChoice& choice) {
  const JsonReader::Mark start = in.mark();
  const std::optional<std::string> type = in.peek_string_member("type");
  bool plain = type == "function";
  in.object([&](std::string_view key) {
    if (!plain || key != "function") {
      plain = plain && key == "type";
      return in.skip();
    }
    ExtraFields extra;
    read_object(in, chosen_function_members, choice, extra);
    plain = extra.empty();
  });
  if (plain && !choice.name.empty()) {
    choice.mode = ToolChoice::Mode::named;
    return;
  }
  in.rewind(start);
  choice = ToolChoice{ToolChoice::Mode::opaque, {}, in.raw_json()};
}

void read_tool_choice(JsonReader& in, ToolChoice& choice) {
  if (in.peek() == JsonReader::Kind::object) return read_named_choice(in, choice);
  const JsonReader::Mark start = in.mark();
  const std::string word = in.string();
  if (word == "none") {
    choice.mode = ToolChoice::Mode::none;
  } else if (word == "auto") {
    choice.mode = ToolChoice::Mode::automatic;
  } else if (word == "required") {
    choice.mode = ToolChoice::Mode::required;
  } else {
    in.rewind(start);
    choice = ToolChoice{ToolChoice::Mode::opaque, {}, in.raw_json()};
  }
}

void read_response_format(JsonReader& in, ResponseFormat& format) {
  const std::optional<std::string> type = in.peek_string_member("type");
  if (!type) return in.fail_member("type", "is required");
  format.kind = *type == "text"          ? ResponseFormat::Kind::text
                : *type == "json_object" ? ResponseFormat::Kind::json_object
                : *type == "json_schema" ? ResponseFormat::Kind::json_schema
                                         : ResponseFormat::Kind::opaque;
  format.whole = in.raw_json();
}

// ---- numbers and flags ----

void read_seed(JsonReader& in, Request& request) {
  Number seed = in.number();
  if (in.ok() && seed.spelling.find_first_of(".eE") != std::string::npos) return in.fail("must be a whole number");
  request.sampling.seed = std::move(seed);
}

// -1 asks for no limit in llama.cpp and its kin; it is handed on as it is.
void read_token_limit(JsonReader& in, Request& request, std::string_view name) {
  const JsonReader::Mark start = in.mark();
  if (in.raw() == "-1") {
    request.extra.emplace_back(std::string(name), RawJson{"-1"});
    return;
  }
  in.rewind(start);
  const std::uint64_t limit = in.unsigned_integer(INT64_MAX);
  if (request.sampling.max_tokens) return in.fail("must not stand beside the other token limit: give one");
  request.sampling.max_tokens = limit;
  request.sampling.max_tokens_is_legacy = name == "max_tokens";
}

void read_stop(JsonReader& in, Request& request) {
  Sampling& sampling = request.sampling;
  if (in.peek() == JsonReader::Kind::string) {
    sampling.stop_is_string = true;
    sampling.stop.push_back(in.string());
  } else if (in.peek() == JsonReader::Kind::array) {
    in.array([&](std::uint32_t) { sampling.stop.push_back(in.string()); });
  } else {
    in.fail("must be a string or a list of strings");
  }
}

std::uint32_t read_count(JsonReader& in) {
  const auto count = static_cast<std::uint32_t>(in.unsigned_integer(most_choices));
  if (count == 0) in.fail("must be at least 1");
  return count;
}

RawJson read_raw_object(JsonReader& in) {
  if (in.peek() != JsonReader::Kind::object) in.fail("must be an object");
  return in.raw_json();
}

// False is kept as an extra member, because the typed form cannot tell it from absent.
void read_stream(JsonReader& in, Request& request) {
  request.stream = in.boolean();
  if (!request.stream) request.extra.emplace_back("stream", RawJson{"false"});
}

constexpr std::array<Member<Request>, 1> stream_options_members{{
    {"include_usage", Rule::optional, [](JsonReader& in, Request& request) { request.include_usage = in.boolean(); }},
}};

template <std::optional<Number> Sampling::* field>
void read_number(JsonReader& in, Request& request) {
  request.sampling.*field = in.number();
}

using RequestMember = Member<Request>;

// In the order in which clients usually send them: the table is searched from its start.
constexpr std::array<RequestMember, 21> common_members{{
    {"model", Rule::sized, [](JsonReader& in, Request& r) { r.model = in.string(); }},
    {"stream", Rule::optional, read_stream},
    {"temperature", Rule::optional, read_number<&Sampling::temperature>},
    {"max_tokens", Rule::optional, [](JsonReader& in, Request& r) { read_token_limit(in, r, "max_tokens"); }},
    {"stream_options", Rule::sized,
     [](JsonReader& in, Request& r) { read_object(in, stream_options_members, r, r.stream_options_extra); }},
    {"top_p", Rule::optional, read_number<&Sampling::top_p>},
    {"top_k", Rule::optional, read_number<&Sampling::top_k>},
    {"min_p", Rule::optional, read_number<&Sampling::min_p>},
    {"stop", Rule::sized, read_stop},
    {"seed", Rule::optional, read_seed},
    {"n", Rule::optional, [](JsonReader& in, Request& r) { r.n = read_count(in); }},
    {"presence_penalty", Rule::optional, read_number<&Sampling::presence_penalty>},
    {"frequency_penalty", Rule::optional, read_number<&Sampling::frequency_penalty>},
    {"repeat_penalty", Rule::optional, read_number<&Sampling::repeat_penalty>},
    {"logit_bias", Rule::optional, [](JsonReader& in, Request& r) { r.sampling.logit_bias = read_raw_object(in); }},
    {"response_format", Rule::optional,
     [](JsonReader& in, Request& r) { read_response_format(in, r.response_format); }},
    {"reasoning_effort", Rule::optional, [](JsonReader& in, Request& r) { r.reasoning_effort = in.string(); }},
    {"user", Rule::optional, [](JsonReader& in, Request& r) { r.user = in.string(); }},
    {"metadata", Rule::optional, [](JsonReader& in, Request& r) { r.metadata = read_raw_object(in); }},
    {"store", Rule::optional, [](JsonReader& in, Request& r) { r.store = in.boolean(); }},
    {"max_completion_tokens", Rule::optional,
     [](JsonReader& in, Request& r) { read_token_limit(in, r, "max_completion_tokens"); }},
}};

template <std::size_t N>
constexpr std::array<RequestMember, N + common_members.size()> with_common(const std::array<RequestMember, N>& own) {
  std::array<RequestMember, N + common_members.size()> all{};
  std::size_t at = 0;
  for (const RequestMember& member : own) all[at++] = member;
  for (const RequestMember& member : common_members) all[at++] = member;
  return all;
}

constexpr auto chat_members = with_common(std::array<RequestMember, 6>{{
    {"messages", Rule::required, read_messages},
    {"tools", Rule::sized,
     [](JsonReader& in, Request& r) { in.array([&](std::uint32_t) { r.tools.push_back(read_tool(in)); }); }},
    {"tool_choice", Rule::optional, [](JsonReader& in, Request& r) { read_tool_choice(in, r.tool_choice); }},
    {"parallel_tool_calls", Rule::optional, [](JsonReader& in, Request& r) { r.parallel_tool_calls = in.boolean(); }},
    {"logprobs", Rule::optional, [](JsonReader& in, Request& r) { r.sampling.logprobs = in.boolean(); }},
    {"top_logprobs", Rule::optional,
     [](JsonReader& in, Request& r) {
       r.sampling.top_logprobs = static_cast<std::uint32_t>(in.unsigned_integer(UINT32_MAX));
     }},
}});

// ---- text completions ----

void expect_token(JsonReader& in) {
  const JsonReader::Mark start = in.mark();
  in.unsigned_integer(UINT32_MAX);
  in.rewind(start);
  in.skip();
}

// [1,2,3] or [[1,2],[3]].
void read_token_prompt(JsonReader& in, Request& request) {
  const JsonReader::Mark start = in.mark();
  in.array([&](std::uint32_t) {
    if (in.peek() != JsonReader::Kind::array) return expect_token(in);
    in.array([&](std::uint32_t) { expect_token(in); });
  });
  in.rewind(start);
  request.token_prompt = in.raw_json();
}

bool starts_with_string(JsonReader& in) {
  const JsonReader::Mark start = in.mark();
  bool is_string = false;
  in.array([&](std::uint32_t index) {
    if (index == 0) is_string = in.peek() == JsonReader::Kind::string;
    in.skip();
  });
  in.rewind(start);
  return is_string;
}

void read_prompt(JsonReader& in, Request& request) {
  if (in.peek() == JsonReader::Kind::string) {
    request.prompts.push_back(in.string());
    return;
  }
  if (in.peek() != JsonReader::Kind::array) return in.fail("must be a string or a list");
  if (in.at_empty()) return in.fail("must not be empty");
  request.prompt_is_list = true;
  if (!starts_with_string(in)) return read_token_prompt(in, request);
  in.array([&](std::uint32_t) { request.prompts.push_back(in.string()); });
}

// One number here where chat has a flag and a number.
void read_completion_logprobs(JsonReader& in, Request& request) {
  request.sampling.logprobs = true;
  request.sampling.top_logprobs = static_cast<std::uint32_t>(in.unsigned_integer(UINT32_MAX));
}

constexpr auto completion_members = with_common(std::array<RequestMember, 5>{{
    {"prompt", Rule::required, read_prompt},
    {"suffix", Rule::optional, [](JsonReader& in, Request& r) { r.suffix = in.string(); }},
    {"echo", Rule::optional, [](JsonReader& in, Request& r) { r.echo = in.boolean(); }},
    {"best_of", Rule::optional, [](JsonReader& in, Request& r) { r.best_of = read_count(in); }},
    {"logprobs", Rule::optional, read_completion_logprobs},
}});

template <std::size_t N>
Result<Request> parse(std::string_view body, Endpoint endpoint, const std::array<RequestMember, N>& members) {
  JsonReader in(body);
  Request request;
  request.endpoint = endpoint;
  read_object(in, members, request, request.extra);
  in.expect_end();
  if (!in.ok()) {
    const std::string_view subject = in.path().empty() ? std::string_view("the request body") : in.path();
    return failure(ErrorCode::invalid_request, std::string(subject) + " " + in.problem(), in.path());
  }
  return request;
}

}  // namespace

Result<Request> parse_chat_request(std::string_view body) { return parse(body, Endpoint::chat, chat_members); }

Result<Request> parse_completion_request(std::string_view body) {
  Result<Request> request = parse(body, Endpoint::completions, completion_members);
  if (request && request->prompts.size() * request->n.value_or(1) > most_answers) {
    return failure(ErrorCode::invalid_request, "prompt asks for more than 4096 answers (prompts times n)", "prompt");
  }
  return request;
}

}  // namespace molly::wire
