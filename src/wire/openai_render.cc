#include <algorithm>
#include <string>

#include "wire/json_members.h"
#include "wire/json_reader.h"
#include "wire/json_write.h"
#include "wire/openai.h"

// Writing answers for a client, whole or in chunks.
namespace molly::wire {
namespace {

using base::JsonWriter;

// ---- what both forms share ----

std::string_view finish_name(const ChoiceDelta& choice) {
  switch (*choice.finish) {
    case FinishReason::stop: return "stop";
    case FinishReason::length: return "length";
    case FinishReason::tool_calls: return "tool_calls";
    case FinishReason::content_filter: return "content_filter";
    case FinishReason::function_call: return "function_call";
    case FinishReason::error: return "error";
    case FinishReason::other: return choice.finish_name;
  }
  return choice.finish_name;
}

void write_finish(JsonWriter& out, const ChoiceDelta& choice) {
  out.key("finish_reason");
  choice.finish ? out.value(finish_name(choice)) : out.null();
}

void write_or_null(JsonWriter& out, std::string_view name, const std::optional<std::string>& value) {
  out.key(name);
  value ? out.value(*value) : out.null();
}

std::string_view role_name(const ChoiceDelta& choice) {
  return choice.role && *choice.role != Role::other ? to_string(*choice.role) : "assistant";
}

enum class CallForm : std::uint8_t { whole, fragment };

void write_tool_call(JsonWriter& out, const ToolCallDelta& call, CallForm form) {
  const bool custom = call.kind == "custom";
  const bool whole = form == CallForm::whole;
  out.begin_object();
  if (!whole) out.member("index", call.index);
  if (!call.id.empty()) out.member("id", call.id);
  if (whole || !call.kind.empty()) out.member("type", custom ? "custom" : "function");
  out.key(custom ? "custom" : "function").begin_object();
  if (whole || !call.name.empty()) out.member("name", call.name);
  out.member(custom ? "input" : "arguments", call.arguments);
  write_members(out, call.function_extra);
  out.end_object();
  write_members(out, call.extra);
  out.end_object();
}

void write_tool_calls(JsonWriter& out, const std::vector<ToolCallDelta>& calls, CallForm form) {
  if (calls.empty()) return;
  out.key("tool_calls").begin_array();
  for (const ToolCallDelta& call : calls) write_tool_call(out, call, form);
  out.end_array();
}

bool has_member(const ExtraFields& extra, std::string_view name) {
  return std::ranges::any_of(extra, [name](const auto& member) { return member.first == name; });
}

void write_details(JsonWriter& out, const Usage& usage, std::string_view object, std::string_view name,
                   const std::optional<std::uint64_t>& number) {
  if (number && !has_member(usage.extra, object)) out.key(object).begin_object().member(name, *number).end_object();
}

void write_usage(JsonWriter& out, const Usage& usage) {
  out.begin_object().member("prompt_tokens", usage.prompt_tokens).member("completion_tokens", usage.completion_tokens);
  if (!has_member(usage.extra, "total_tokens")) {
    out.member("total_tokens", usage.prompt_tokens + usage.completion_tokens);
  }
  write_details(out, usage, "prompt_tokens_details", "cached_tokens", usage.cached_tokens);
  write_details(out, usage, "completion_tokens_details", "reasoning_tokens", usage.reasoning_tokens);
  write_members(out, usage.extra);
  out.end_object();
}

std::string_view object_name(Endpoint endpoint, std::string_view chat) {
  return endpoint == Endpoint::chat ? chat : "text_completion";
}

void write_head(JsonWriter& out, const AnswerIdentity& identity, std::string_view object) {
  out.member("id", identity.id).member("object", object).member("created", identity.created);
  out.member("model", identity.model);
}

// ---- chunks ----

bool has_payload(const ChoiceDelta& delta) {
  const auto filled = [](const std::optional<std::string>& text) { return text && !text->empty(); };
  return filled(delta.text) || filled(delta.reasoning) || filled(delta.refusal) || !delta.tool_calls.empty() ||
         !delta.logprobs.text.empty() || !delta.message_extra.empty();
}

enum class Position : std::uint8_t { first, later };

void write_delta(JsonWriter& out, const ChoiceDelta& delta, Position position) {
  out.key("delta").begin_object();
  if (position == Position::first || delta.role) out.member("role", role_name(delta));
  if (delta.text) {
    out.member("content", *delta.text);
  } else if (position == Position::first) {
    out.key("content");
    has_payload(delta) ? out.null() : out.value("");
  }
  if (delta.reasoning) out.member("reasoning_content", *delta.reasoning);
  if (delta.refusal) out.member("refusal", *delta.refusal);
  write_tool_calls(out, delta.tool_calls, CallForm::fragment);
  write_members(out, delta.message_extra);
  out.end_object();
}

void write_logprobs(JsonWriter& out, const ChoiceDelta& delta) {
  if (!delta.logprobs.text.empty()) out.raw_member("logprobs", delta.logprobs.text);
}

// The delta without its finish.
void write_payload_choice(JsonWriter& out, const ChoiceDelta& delta, Position position) {
  out.begin_object().member("index", delta.index);
  write_delta(out, delta, position);
  write_logprobs(out, delta);
  out.key("finish_reason").null();
  if (!delta.finish) write_members(out, delta.extra);
  out.end_object();
}

void write_finish_choice(JsonWriter& out, const ChoiceDelta& delta) {
  out.begin_object().member("index", delta.index).key("delta").begin_object().end_object();
  write_finish(out, delta);
  write_members(out, delta.extra);
  out.end_object();
}

void write_text_choice(JsonWriter& out, const ChoiceDelta& delta) {
  out.begin_object().member("text", delta.text.value_or("")).member("index", delta.index);
  out.key("logprobs");
  delta.logprobs.text.empty() ? out.null() : out.raw(delta.logprobs.text);
  write_finish(out, delta);
  write_members(out, delta.extra);
  out.end_object();
}

// Opens an event's object with the members of every chunk, and closes it again.
class ChunkWriter {
 public:
  // `bytes` gives its capacity and what it holds already.
  ChunkWriter(std::string bytes, std::string_view head) : out_(begin(std::move(bytes))) {
    out_.begin_object().raw(head).key("choices").begin_array();
  }
  JsonWriter& out() { return out_; }
  void end_choices() { out_.end_array(); }

  std::string end() {
    out_.end_object();
    std::string bytes = std::move(out_).text();
    keep_on_one_line(bytes);
    return bytes.append("\n\n");
  }

 private:
  static constexpr std::string_view field = "data: ";

  std::string begin(std::string bytes) {
    bytes += field;
    start_ = bytes.size();
    return bytes;
  }

  // Members that came from elsewhere may be laid out over several lines, which would end the event.
  void keep_on_one_line(std::string& bytes) const {
    for (std::size_t at = start_; (at = bytes.find_first_of("\r\n", at)) != std::string::npos; ++at) bytes[at] = ' ';
  }

  std::size_t start_ = 0;
  JsonWriter out_;
};

}  // namespace

ChunkRenderer::ChunkRenderer(Endpoint endpoint, AnswerIdentity identity, UsageInStream usage)
    : endpoint_(endpoint), identity_(std::move(identity)), usage_mode_(usage) {
  set_head({});
}

std::string_view ChunkRenderer::render(const Event& event) {
  bytes_.clear();
  if (ended_) return bytes_;
  if (const auto* delta = std::get_if<ChoiceDelta>(&event)) {
    choice(*delta);
  } else if (const auto* started = std::get_if<Started>(&event)) {
    start(*started);
  } else if (const auto* report = std::get_if<UsageReport>(&event)) {
    usage_ = *report;
  } else if (const auto* failed = std::get_if<Failed>(&event)) {
    bytes_ = "data: " + render_error(failed->error) + "\n\n";
    ended_ = true;
  } else {
    done();
  }
  return bytes_;
}

void ChunkRenderer::set_head(std::string_view system_fingerprint) {
  JsonWriter out;
  out.begin_object();
  write_head(out, identity_, object_name(endpoint_, "chat.completion.chunk"));
  if (!system_fingerprint.empty()) out.member("system_fingerprint", system_fingerprint);
  head_ = std::move(out).text().substr(1);
}

void ChunkRenderer::start(const Started& started) {
  if (!started.system_fingerprint.empty()) set_head(started.system_fingerprint);
  first_extra_ = started.extra;
}

bool ChunkRenderer::first_of(std::uint32_t index) {
  if (index >= begun_.size()) begun_.resize(index + 1);
  const bool first = !begun_[index];
  begun_[index] = true;
  return first;
}

template <class Write>
void ChunkRenderer::chunk(const ExtraFields& answer_extra, Write&& write) {
  ChunkWriter writer(std::move(bytes_), head_);
  write(writer.out());
  writer.end_choices();
  if (usage_mode_ == UsageInStream::asked) writer.out().key("usage").null();
  write_members(writer.out(), first_extra_);
  write_members(writer.out(), answer_extra);
  first_extra_.clear();
  bytes_ = writer.end();
}

void ChunkRenderer::choice(const ChoiceDelta& delta) {
  if (endpoint_ == Endpoint::completions) {
    return chunk(delta.answer_extra, [&](JsonWriter& out) { write_text_choice(out, delta); });
  }
  const Position position = first_of(delta.index) ? Position::first : Position::later;
  if (!delta.finish || position == Position::first || has_payload(delta)) {
    chunk(delta.finish ? ExtraFields{} : delta.answer_extra,
          [&](JsonWriter& out) { write_payload_choice(out, delta, position); });
  }
  if (delta.finish) chunk(delta.answer_extra, [&](JsonWriter& out) { write_finish_choice(out, delta); });
}

void ChunkRenderer::done() {
  ended_ = true;
  if (usage_mode_ == UsageInStream::asked && usage_) {
    ChunkWriter writer(std::move(bytes_), head_);
    writer.end_choices();
    write_usage(writer.out().key("usage"), usage_->usage);
    write_members(writer.out(), first_extra_);
    write_members(writer.out(), usage_->answer_extra);
    bytes_ = writer.end();
  }
  bytes_ += "data: [DONE]\n\n";
}

// ---- whole answers ----

namespace {

void merge_extra(ExtraFields& into, ExtraFields&& from) {
  for (auto& member : from) {
    const auto old = std::ranges::find(into, member.first, &ExtraFields::value_type::first);
    if (old == into.end()) {
      into.push_back(std::move(member));
    } else {
      old->second = std::move(member.second);
    }
  }
}

void merge_text(std::optional<std::string>& into, std::optional<std::string>&& from) {
  if (!from) return;
  if (into) {
    *into += *from;
  } else {
    into = std::move(from);
  }
}

void set_once(std::string& into, std::string&& from) {
  if (into.empty()) into = std::move(from);
}

void merge_tool_call(std::vector<ToolCallDelta>& calls, ToolCallDelta&& from) {
  const auto old = std::ranges::find(calls, from.index, &ToolCallDelta::index);
  if (old == calls.end()) {
    const auto place = std::ranges::upper_bound(calls, from.index, {}, &ToolCallDelta::index);
    calls.insert(place, std::move(from));
    return;
  }
  set_once(old->id, std::move(from.id));
  set_once(old->kind, std::move(from.kind));
  set_once(old->name, std::move(from.name));
  old->arguments += from.arguments;
  merge_extra(old->extra, std::move(from.extra));
  merge_extra(old->function_extra, std::move(from.function_extra));
}

// One list member of a log-probabilities object: elements go behind those that are there.
void append_list(std::string& open_list, std::string_view list) {
  std::string_view elements = list.substr(1, list.size() - 2);
  const std::size_t start = elements.find_first_not_of(" \n\r\t");
  if (start == std::string_view::npos) return;
  if (open_list.size() > 1) open_list += ',';
  open_list += elements.substr(start);
}

void merge_logprobs(ExtraFields& into, const std::string& json) {
  if (json.empty()) return;
  JsonReader in(json);
  in.object([&](std::string_view key) {
    const bool is_list = in.peek() == JsonReader::Kind::array;
    const std::string_view value = in.raw();
    auto old = std::ranges::find(into, key, &ExtraFields::value_type::first);
    if (old == into.end()) old = into.insert(into.end(), {std::string(key), RawJson{is_list ? "[" : "null"}});
    std::string& text = old->second.text;
    if (!is_list) {
      if (!text.starts_with('[')) text = value;
      return;
    }
    if (!text.starts_with('[')) text = "[";
    append_list(text, value);
  });
}

void write_merged_logprobs(JsonWriter& out, const ExtraFields& logprobs) {
  out.key("logprobs");
  if (logprobs.empty()) {
    out.null();
    return;
  }
  out.begin_object();
  for (const auto& [name, value] : logprobs) {
    out.raw_member(name, value.text.starts_with('[') ? value.text + "]" : value.text);
  }
  out.end_object();
}

void write_message(JsonWriter& out, const ChoiceDelta& choice) {
  out.key("message").begin_object().member("role", role_name(choice));
  write_or_null(out, "content", choice.text);
  if (!has_member(choice.message_extra, "refusal")) write_or_null(out, "refusal", choice.refusal);
  if (choice.reasoning) out.member("reasoning_content", *choice.reasoning);
  write_tool_calls(out, choice.tool_calls, CallForm::whole);
  write_members(out, choice.message_extra);
  out.end_object();
}

void write_whole_choice(JsonWriter& out, Endpoint endpoint, const ChoiceDelta& choice, const ExtraFields& logprobs) {
  out.begin_object();
  if (endpoint == Endpoint::chat) {
    out.member("index", choice.index);
    write_message(out, choice);
  } else {
    out.member("text", choice.text.value_or("")).member("index", choice.index);
  }
  write_merged_logprobs(out, logprobs);
  write_finish(out, choice);
  write_members(out, choice.extra);
  out.end_object();
}

}  // namespace

AnswerBuilder::Choice& AnswerBuilder::choice(std::uint32_t index) {
  const auto index_of = [](const Choice& choice) { return choice.whole.index; };
  auto place = std::ranges::lower_bound(choices_, index, {}, index_of);
  if (place == choices_.end() || place->whole.index != index) {
    place = choices_.insert(place, Choice{});
    place->whole.index = index;
  }
  return *place;
}

void AnswerBuilder::add(Event event) {
  if (auto* delta = std::get_if<ChoiceDelta>(&event)) return merge(std::move(*delta));
  if (auto* started = std::get_if<Started>(&event)) {
    started_ = std::move(*started);
  } else if (auto* report = std::get_if<UsageReport>(&event)) {
    usage_ = std::move(report->usage);
    merge_extra(started_.extra, std::move(report->answer_extra));
  } else if (auto* failed = std::get_if<Failed>(&event)) {
    error_ = std::move(failed->error);
  } else {
    done_ = true;
  }
}

void AnswerBuilder::merge(ChoiceDelta&& delta) {
  Choice& choice = this->choice(delta.index);
  ChoiceDelta& whole = choice.whole;
  if (delta.role) whole.role = delta.role;
  merge_text(whole.text, std::move(delta.text));
  merge_text(whole.reasoning, std::move(delta.reasoning));
  merge_text(whole.refusal, std::move(delta.refusal));
  for (ToolCallDelta& call : delta.tool_calls) merge_tool_call(whole.tool_calls, std::move(call));
  merge_logprobs(choice.logprobs, delta.logprobs.text);
  if (delta.finish) {
    whole.finish = delta.finish;
    whole.finish_name = std::move(delta.finish_name);
  }
  merge_extra(whole.extra, std::move(delta.extra));
  merge_extra(whole.message_extra, std::move(delta.message_extra));
  merge_extra(started_.extra, std::move(delta.answer_extra));
}

std::string AnswerBuilder::render(const AnswerIdentity& identity) const {
  JsonWriter out;
  out.begin_object();
  write_head(out, identity, object_name(endpoint_, "chat.completion"));
  out.key("choices").begin_array();
  for (const Choice& choice : choices_) write_whole_choice(out, endpoint_, choice.whole, choice.logprobs);
  out.end_array();
  if (usage_) write_usage(out.key("usage"), *usage_);
  if (!started_.system_fingerprint.empty()) out.member("system_fingerprint", started_.system_fingerprint);
  write_members(out, started_.extra);
  out.end_object();
  return std::move(out).text();
}

}  // namespace molly::wire
