#include <algorithm>
#include <array>
#include <string>

#include "wire/openai.h"

// What a request asks of a target: parameters beyond plain text, and how long its input can be.
namespace molly::wire {
namespace {

// ---- parameters ----

class Unsupported {
 public:
  void unless(bool supported, bool used, std::string_view name) {
    if (supported || !used || std::ranges::find(names_, name) != names_.end()) return;
    names_.emplace_back(name);
  }
  std::vector<std::string> take() { return std::move(names_); }

 private:
  std::vector<std::string> names_;
};

void check_parts(const Request& request, const ParameterSupport& support, Unsupported& found) {
  for (const Message& message : request.messages) {
    for (const ContentPart& part : message.content.parts) {
      found.unless(support.image, std::holds_alternative<ImagePart>(part.value), "messages[].content[].image_url");
      found.unless(support.audio, std::holds_alternative<AudioPart>(part.value), "messages[].content[].input_audio");
      found.unless(support.file, std::holds_alternative<FilePart>(part.value), "messages[].content[].file");
      if (const auto* opaque = std::get_if<OpaquePart>(&part.value)) {
        found.unless(support.opaque_parts, true, "messages[].content[]." + opaque->type);
      }
    }
  }
}

bool has_tool_calls(const Request& request) {
  return std::ranges::any_of(request.messages, [](const Message& message) { return !message.tool_calls.empty(); });
}

bool wants_format(const ResponseFormat& format) {
  return format.kind != ResponseFormat::Kind::unset && format.kind != ResponseFormat::Kind::text;
}

void check_sampling(const Sampling& sampling, const ParameterSupport& support, Unsupported& found) {
  found.unless(support.extended_sampling, sampling.top_k.has_value(), "top_k");
  found.unless(support.extended_sampling, sampling.min_p.has_value(), "min_p");
  found.unless(support.extended_sampling, sampling.repeat_penalty.has_value(), "repeat_penalty");
  found.unless(support.penalties, sampling.presence_penalty.has_value(), "presence_penalty");
  found.unless(support.penalties, sampling.frequency_penalty.has_value(), "frequency_penalty");
  found.unless(support.seed, sampling.seed.has_value(), "seed");
  found.unless(support.stop, !sampling.stop.empty(), "stop");
  found.unless(support.logit_bias, !sampling.logit_bias.text.empty(), "logit_bias");
  found.unless(support.logprobs, sampling.logprobs.value_or(false), "logprobs");
  found.unless(support.logprobs, sampling.top_logprobs.has_value(), "top_logprobs");
}

// ---- length ----

constexpr std::uint64_t template_bytes = 1024;       // default system prompts, the assistant's header
constexpr std::uint64_t tool_template_bytes = 4096;  // how to call tools
constexpr std::uint64_t message_bytes = 64;          // role markers, spelled out
constexpr std::uint64_t item_bytes = 64;             // markers around a tool, a call or a part
constexpr std::uint64_t image_tokens = 16384;        // the most that current vision encoders give one image

constexpr bool is_one_of(char c, std::string_view set) { return set.contains(c); }

// What one byte becomes in a JSON string, at worst: escapes for HTML and for all beyond ASCII.
constexpr std::array<std::uint8_t, 256> escaped_bytes = [] {
  std::array<std::uint8_t, 256> bytes{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const bool long_escape = byte < 0x20 || byte == 0x7f || is_one_of(c, "<>&'");
    bytes[byte] = long_escape ? 6 : byte >= 0x80 ? 3 : is_one_of(c, "\"\\") ? 2 : 1;
  }
  return bytes;
}();

// Bytes of text that a template writes as a JSON string.
std::uint64_t as_json(std::string_view text) {
  std::uint64_t bytes = 2;
  for (const char c : text) bytes += escaped_bytes[static_cast<unsigned char>(c)];
  return bytes;
}

// Bytes of JSON that a template writes anew, at worst indented by four.
std::uint64_t as_indented(std::string_view json) {
  std::uint64_t bytes = 0;
  std::uint64_t depth = 0;
  for (const char c : json) {
    bytes += escaped_bytes[static_cast<unsigned char>(c)];
    if (c == '{' || c == '[') ++depth;
    if (is_one_of(c, "{[]},:")) bytes += 2 + 4 * depth;
    if ((c == '}' || c == ']') && depth > 0) --depth;
  }
  return bytes;
}

struct PartLength {
  std::uint64_t operator()(const TextPart& text) const { return as_json(text.text); }
  std::uint64_t operator()(const ImagePart&) const { return image_tokens; }
  std::uint64_t operator()(const AudioPart& audio) const { return audio.data.size(); }
  std::uint64_t operator()(const FilePart& file) const { return file.data.size() + file.filename.size(); }
  std::uint64_t operator()(const RefusalPart& refusal) const { return as_json(refusal.text); }
  std::uint64_t operator()(const ReasoningPart& thought) const { return as_json(thought.text); }
  std::uint64_t operator()(const OpaquePart& opaque) const { return image_tokens + as_indented(opaque.json.text); }
};

// Templates write most text as it is, but that of tools often as JSON.
std::uint64_t text_length(const Message& message, std::string_view text) {
  const bool plain = message.role == Role::user || message.role == Role::system || message.role == Role::developer;
  return plain ? text.size() : as_json(text);
}

std::uint64_t message_length(const Message& message) {
  std::uint64_t bytes = message_bytes + message.role_name.size() + as_json(message.name);
  bytes += text_length(message, message.content.text) + as_json(message.tool_call_id);
  bytes += as_json(message.reasoning.value_or("")) + as_json(message.refusal.value_or(""));
  for (const ContentPart& part : message.content.parts) bytes += item_bytes + std::visit(PartLength{}, part.value);
  for (const ToolCall& call : message.tool_calls) {
    bytes += item_bytes + as_json(call.id) + as_json(call.name) + as_json(call.arguments) + as_indented(call.arguments);
  }
  for (const auto& [name, value] : message.extra) bytes += name.size() + as_indented(value.text);
  return bytes;
}

std::uint64_t tool_length(const Tool& tool) {
  return item_bytes + as_json(tool.name) + as_json(tool.description) + as_indented(tool.parameters.text) +
         as_indented(tool.whole.text);
}

}  // namespace

std::vector<std::string> unsupported_parameters(const Request& request, const ParameterSupport& support) {
  Unsupported found;
  check_parts(request, support, found);
  found.unless(support.tools, !request.tools.empty(), "tools");
  found.unless(support.tools, has_tool_calls(request), "messages[].tool_calls");
  found.unless(support.tools, request.tool_choice.mode != ToolChoice::Mode::unset, "tool_choice");
  found.unless(support.tools && support.parallel_tool_calls, request.parallel_tool_calls.has_value(),
               "parallel_tool_calls");
  found.unless(support.response_format, wants_format(request.response_format), "response_format");
  check_sampling(request.sampling, support, found);
  found.unless(support.multiple_choices, request.n.value_or(1) > 1, "n");
  found.unless(support.best_of, request.best_of.value_or(1) > 1, "best_of");
  found.unless(support.suffix, request.suffix.has_value(), "suffix");
  found.unless(support.echo, request.echo.value_or(false), "echo");
  found.unless(support.reasoning_effort, request.reasoning_effort.has_value(), "reasoning_effort");
  found.unless(support.token_prompt, !request.token_prompt.text.empty(), "prompt");
  return found.take();
}

std::uint64_t token_upper_bound(const Request& request) {
  std::uint64_t longest_prompt = 0;
  for (const std::string& prompt : request.prompts)
    longest_prompt = std::max<std::uint64_t>(longest_prompt, prompt.size());
  if (request.endpoint == Endpoint::completions) {
    // A token's number takes at least one digit, so the list is longer than the tokens are many.
    return longest_prompt + request.suffix.value_or("").size() + request.token_prompt.text.size() + item_bytes;
  }
  std::uint64_t bytes = template_bytes + as_indented(request.response_format.whole.text);
  for (const Message& message : request.messages) bytes += message_length(message);
  if (!request.tools.empty()) bytes += tool_template_bytes;
  for (const Tool& tool : request.tools) bytes += tool_length(tool);
  return bytes;
}

}  // namespace molly::wire
