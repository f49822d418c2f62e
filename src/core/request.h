#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/json.h"

// One typed request for every dialect (OpenAI, Anthropic, Ollama): what one of them can say has a
// place here, and what only some other program understands stays in `extra`.
namespace molly {

enum class Role : std::uint8_t { system, developer, user, assistant, tool, function, other };

struct TextPart {
  std::string text;
};

struct ImagePart {
  std::string url;     // http(s): or data: URL
  std::string detail;  // "auto", "low", "high" or empty
};

struct AudioPart {
  std::string data;    // base64
  std::string format;  // "wav", "mp3", ...
};

struct FilePart {
  std::string file_id;  // one of file_id or data is set
  std::string filename;
  std::string data;  // data: URL or base64
};

struct RefusalPart {
  std::string text;
};

// Anthropic "thinking" and llama.cpp "reasoning_content" in history; the signature is opaque.
struct ReasoningPart {
  std::string text;
  std::string signature;
};

// A part that this version has no type for; kept whole, and treated by policy as unclassifiable.
struct OpaquePart {
  std::string type;
  RawJson json;
};

struct ContentPart {
  std::variant<TextPart, ImagePart, AudioPart, FilePart, RefusalPart, ReasoningPart, OpaquePart> value;
  ExtraFields extra;        // members of the part beside the typed ones, e.g. cache_control
  ExtraFields inner_extra;  // members inside the object that holds the value (OpenAI: image_url, input_audio, file)
};

// A message's content as the client spelled it: absent, null, one string, or a list of parts.
struct Content {
  enum class Form : std::uint8_t { absent, null, text, parts };
  Form form = Form::absent;
  std::string text;                // Form::text
  std::vector<ContentPart> parts;  // Form::parts
};

struct ToolCall {
  std::string id;
  std::string kind = "function";  // "function" or "custom"; empty: not spelled, the same as "function"
  std::string name;
  std::string arguments;       // as the model wrote it: usually, not always, JSON
  ExtraFields extra;           // beside "function"
  ExtraFields function_extra;  // inside "function"
};

struct Message {
  Role role = Role::user;
  std::string role_name;  // the spelling when role is Role::other
  Content content;
  std::string name;
  std::string tool_call_id;
  std::vector<ToolCall> tool_calls;
  std::optional<std::string> reasoning;  // "reasoning_content"
  std::optional<std::string> refusal;
  ExtraFields extra;
};

struct Tool {
  std::string kind = "function";
  std::string name;
  std::string description;
  RawJson parameters;  // JSON Schema; empty text: none given
  std::optional<bool> strict;
  RawJson whole;               // kinds other than "function": the tool as it came
  ExtraFields extra;           // beside "function"
  ExtraFields function_extra;  // inside "function"
};

struct ToolChoice {
  enum class Mode : std::uint8_t { unset, none, automatic, required, named, opaque };
  Mode mode = Mode::unset;
  std::string name;  // Mode::named
  RawJson whole;     // Mode::opaque
};

struct ResponseFormat {
  enum class Kind : std::uint8_t { unset, text, json_object, json_schema, opaque };
  Kind kind = Kind::unset;
  RawJson whole;  // the value as it came; empty text when made here
};

// Numbers absent from the request are absent here: a target's own defaults apply.
struct Sampling {
  std::optional<Number> temperature;
  std::optional<Number> top_p;
  std::optional<Number> top_k;
  std::optional<Number> min_p;
  std::optional<Number> presence_penalty;
  std::optional<Number> frequency_penalty;
  std::optional<Number> repeat_penalty;
  std::optional<Number> seed;
  std::optional<std::uint64_t> max_tokens;
  bool max_tokens_is_legacy = false;  // spelled "max_tokens", not "max_completion_tokens"
  std::vector<std::string> stop;
  bool stop_is_string = false;  // spelled as one string, not as a list
  RawJson logit_bias;
  std::optional<bool> logprobs;
  std::optional<std::uint32_t> top_logprobs;
};

enum class Endpoint : std::uint8_t { chat, completions };

struct Request {
  Endpoint endpoint = Endpoint::chat;
  std::string model;                 // as the client wrote it; empty means "auto"
  std::vector<Message> messages;     // Endpoint::chat
  std::vector<std::string> prompts;  // Endpoint::completions, text form
  RawJson token_prompt;              // Endpoint::completions, token form, as it came
  bool prompt_is_list = false;
  std::optional<std::string> suffix;
  std::optional<bool> echo;
  std::vector<Tool> tools;
  ToolChoice tool_choice;
  std::optional<bool> parallel_tool_calls;
  ResponseFormat response_format;
  Sampling sampling;
  std::optional<std::uint32_t> n;
  std::optional<std::uint32_t> best_of;
  bool stream = false;
  std::optional<bool> include_usage;  // stream_options.include_usage
  ExtraFields stream_options_extra;
  std::optional<std::string> reasoning_effort;
  std::optional<std::string> user;
  RawJson metadata;
  std::optional<bool> store;
  ExtraFields extra;
};

std::string_view to_string(Role role);

}  // namespace molly
