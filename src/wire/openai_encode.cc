#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "wire/json_write.h"
#include "wire/openai.h"

// Writing requests for an upstream.
namespace molly::wire {
namespace {

using base::JsonWriter;

// ---- messages ----

struct PartWriter {
  JsonWriter& out;
  const ContentPart& part;

  void begin(std::string_view type) { out.begin_object().member("type", type); }
  void end() {
    write_members(out, part.extra);
    out.end_object();
  }
  void begin_inner(std::string_view name) { out.key(name).begin_object(); }
  void end_inner() {
    write_members(out, part.inner_extra);
    out.end_object();
  }
  void optional(std::string_view name, const std::string& value) {
    if (!value.empty()) out.member(name, value);
  }

  void operator()(const TextPart& text) {
    begin("text");
    out.member("text", text.text);
    end();
  }
  void operator()(const ImagePart& image) {
    begin("image_url");
    begin_inner("image_url");
    out.member("url", image.url);
    optional("detail", image.detail);
    end_inner();
    end();
  }
  void operator()(const AudioPart& audio) {
    begin("input_audio");
    begin_inner("input_audio");
    out.member("data", audio.data);
    optional("format", audio.format);
    end_inner();
    end();
  }
  void operator()(const FilePart& file) {
    begin("file");
    begin_inner("file");
    optional("file_id", file.file_id);
    optional("filename", file.filename);
    optional("file_data", file.data);
    end_inner();
    end();
  }
  void operator()(const RefusalPart& refusal) {
    begin("refusal");
    out.member("refusal", refusal.text);
    end();
  }
  void operator()(const ReasoningPart&) {}  // this dialect has it beside the content
  void operator()(const OpaquePart& opaque) { out.raw(opaque.json.text); }
};

void write_content(JsonWriter& out, const Content& content) {
  switch (content.form) {
    case Content::Form::absent: return;
    case Content::Form::null: out.key("content").null(); return;
    case Content::Form::text: out.member("content", content.text); return;
    case Content::Form::parts: break;
  }
  out.key("content").begin_array();
  for (const ContentPart& part : content.parts) std::visit(PartWriter{out, part}, part.value);
  out.end_array();
}

// What the message says as reasoning, be it a member (this dialect) or parts (others).
std::optional<std::string> reasoning_of(const Message& message) {
  std::optional<std::string> reasoning = message.reasoning;
  for (const ContentPart& part : message.content.parts) {
    const auto* thought = std::get_if<ReasoningPart>(&part.value);
    if (thought != nullptr) reasoning = reasoning.value_or("") + thought->text;
  }
  return reasoning;
}

void write_tool_call(JsonWriter& out, const ToolCall& call) {
  const bool custom = call.kind == "custom";
  out.begin_object();
  if (!call.id.empty()) out.member("id", call.id);
  if (!call.kind.empty()) out.member("type", call.kind);
  out.key(custom ? "custom" : "function").begin_object();
  out.member("name", call.name).member(custom ? "input" : "arguments", call.arguments);
  write_members(out, call.function_extra);
  out.end_object();
  write_members(out, call.extra);
  out.end_object();
}

void write_message(JsonWriter& out, const Message& message) {
  out.begin_object();
  out.member("role", message.role == Role::other ? std::string_view(message.role_name) : to_string(message.role));
  write_content(out, message.content);
  if (const auto reasoning = reasoning_of(message)) out.member("reasoning_content", *reasoning);
  if (message.refusal) out.member("refusal", *message.refusal);
  if (!message.name.empty()) out.member("name", message.name);
  if (!message.tool_call_id.empty()) out.member("tool_call_id", message.tool_call_id);
  if (!message.tool_calls.empty()) {
    out.key("tool_calls").begin_array();
    for (const ToolCall& call : message.tool_calls) write_tool_call(out, call);
    out.end_array();
  }
  write_members(out, message.extra);
  out.end_object();
}

void write_tool(JsonWriter& out, const Tool& tool) {
  if (!tool.whole.text.empty()) {
    out.raw(tool.whole.text);
    return;
  }
  out.begin_object().member("type", tool.kind).key("function").begin_object();
  out.member("name", tool.name);
  if (!tool.description.empty()) out.member("description", tool.description);
  if (!tool.parameters.text.empty()) out.raw_member("parameters", tool.parameters.text);
  if (tool.strict) out.member("strict", *tool.strict);
  write_members(out, tool.function_extra);
  out.end_object();
  write_members(out, tool.extra);
  out.end_object();
}

// ---- the request ----

class RequestWriter {
 public:
  RequestWriter(const Request& request, const EncodeOptions& options) : request_(request), options_(options) {}

  std::string write() {
    out_.begin_object();
    model();
    input();
    tools();
    sampling();
    limits();
    stream();
    rest();
    extra();
    out_.end_object();
    return std::move(out_).text();
  }

 private:
  // Remembers the name, because a typed value wins over an extra member of the same name.
  JsonWriter& key(std::string_view name) {
    if (written_count_ < written_.size()) written_[written_count_++] = name;
    return out_.key(name);
  }

  template <class T>
  void optional(std::string_view name, const std::optional<T>& value) {
    if (value) key(name).value(*value);
  }
  void optional(std::string_view name, const std::optional<Number>& value) {
    if (value) write_number(key(name), *value);
  }
  void optional(std::string_view name, const RawJson& value) {
    if (!value.text.empty()) key(name).raw(value.text);
  }

  void model() {
    const std::string& name = options_.model.empty() ? request_.model : options_.model;
    if (!name.empty()) key("model").value(name);
  }

  void input() {
    if (request_.endpoint == Endpoint::completions) return prompt();
    key("messages").begin_array();
    for (const Message& message : request_.messages) write_message(out_, message);
    out_.end_array();
  }

  void prompt() {
    key("prompt");
    if (!request_.token_prompt.text.empty()) {
      out_.raw(request_.token_prompt.text);
    } else if (!request_.prompt_is_list) {
      out_.value(request_.prompts.empty() ? std::string() : request_.prompts.front());
    } else {
      strings(request_.prompts);
    }
    optional("suffix", request_.suffix);
    optional("echo", request_.echo);
    optional("best_of", request_.best_of);
  }

  void tools() {
    if (!request_.tools.empty()) {
      key("tools").begin_array();
      for (const Tool& tool : request_.tools) write_tool(out_, tool);
      out_.end_array();
    }
    tool_choice();
    optional("parallel_tool_calls", request_.parallel_tool_calls);
  }

  void tool_choice() {
    const ToolChoice& choice = request_.tool_choice;
    switch (choice.mode) {
      case ToolChoice::Mode::unset: return;
      case ToolChoice::Mode::none: key("tool_choice").value("none"); return;
      case ToolChoice::Mode::automatic: key("tool_choice").value("auto"); return;
      case ToolChoice::Mode::required: key("tool_choice").value("required"); return;
      case ToolChoice::Mode::opaque: key("tool_choice").raw(choice.whole.text); return;
      case ToolChoice::Mode::named: break;
    }
    key("tool_choice").begin_object().member("type", "function");
    out_.key("function").begin_object().member("name", choice.name).end_object().end_object();
  }

  void sampling() {
    const Sampling& sampling = request_.sampling;
    optional("temperature", sampling.temperature);
    optional("top_p", sampling.top_p);
    optional("top_k", sampling.top_k);
    optional("min_p", sampling.min_p);
    optional("presence_penalty", sampling.presence_penalty);
    optional("frequency_penalty", sampling.frequency_penalty);
    optional("repeat_penalty", sampling.repeat_penalty);
    optional("seed", sampling.seed);
    optional("logit_bias", sampling.logit_bias);
    if (request_.endpoint == Endpoint::completions) {
      if (sampling.logprobs.value_or(false)) key("logprobs").value(sampling.top_logprobs.value_or(0));
    } else {
      optional("logprobs", sampling.logprobs);
      optional("top_logprobs", sampling.top_logprobs);
    }
  }

  void limits() {
    const Sampling& sampling = request_.sampling;
    using Spelling = EncodeOptions::TokenLimit;
    const bool legacy = options_.token_limit == Spelling::as_spelled ? sampling.max_tokens_is_legacy
                                                                     : options_.token_limit == Spelling::max_tokens;
    optional(legacy ? "max_tokens" : "max_completion_tokens", sampling.max_tokens);
    if (sampling.stop.empty()) return;
    key("stop");
    if (sampling.stop_is_string) {
      out_.value(sampling.stop.front());
    } else {
      strings(sampling.stop);
    }
  }

  void stream() {
    if (request_.stream) key("stream").value(true);
    const bool forced = request_.stream && options_.include_usage.has_value();
    const std::optional<bool> usage = forced ? options_.include_usage : request_.include_usage;
    if (!usage && request_.stream_options_extra.empty()) return;
    key("stream_options").begin_object();
    if (usage) out_.member("include_usage", *usage);
    for (const auto& [name, value] : request_.stream_options_extra) {
      if (!usage || name != "include_usage") out_.raw_member(name, value.text);
    }
    out_.end_object();
  }

  void rest() {
    optional("n", request_.n);
    optional("response_format", response_format());
    optional("reasoning_effort", request_.reasoning_effort);
    optional("user", request_.user);
    optional("metadata", request_.metadata);
    optional("store", request_.store);
  }

  RawJson response_format() const {
    const ResponseFormat& format = request_.response_format;
    if (!format.whole.text.empty()) return format.whole;
    if (format.kind == ResponseFormat::Kind::text) return {R"({"type":"text"})"};
    if (format.kind == ResponseFormat::Kind::json_object) return {R"({"type":"json_object"})"};
    return {};
  }

  void extra() {
    const std::span written(written_.data(), written_count_);
    for (const auto& [name, value] : request_.extra) {
      if (std::ranges::find(written, name) == written.end()) out_.raw_member(name, value.text);
    }
  }

  void strings(const std::vector<std::string>& list) {
    out_.begin_array();
    for (const std::string& text : list) out_.value(text);
    out_.end_array();
  }

  const Request& request_;
  const EncodeOptions& options_;
  JsonWriter out_;
  std::array<std::string_view, 40> written_;
  std::size_t written_count_ = 0;
};

}  // namespace

std::string encode_request(const Request& request, const EncodeOptions& options) {
  return RequestWriter(request, options).write();
}

}  // namespace molly::wire
