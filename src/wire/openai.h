#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/event.h"
#include "core/json.h"
#include "core/request.h"

// The OpenAI dialect: /v1/chat/completions, /v1/completions and /v1/models, both directions. Everything here is a
// pure function of its arguments, or a small state machine that one thread uses; nothing blocks.
namespace molly::wire {

// ---- requests ----

// Strict about JSON (UTF-8, no duplicate members in typed objects, at most 64 levels) and about the types of the
// members it knows; members it does not know are kept in `extra`. Errors are invalid_request with the field's path,
// such as "messages[2].content[0].type". A missing model is an empty one.
Result<Request> parse_chat_request(std::string_view body);
Result<Request> parse_completion_request(std::string_view body);

struct EncodeOptions {
  enum class TokenLimit : std::uint8_t { as_spelled, max_tokens, max_completion_tokens };

  std::string model;                  // replaces the request's; empty: keep it
  std::optional<bool> include_usage;  // forces stream_options.include_usage of a streaming request
  TokenLimit token_limit = TokenLimit::as_spelled;
};

// The body for an upstream. With default options and a parsed request: the same JSON value as the client's body,
// numbers spelled as there.
std::string encode_request(const Request& request, const EncodeOptions& options = {});

// What a target honours beyond plain text in, text out. The default honours everything.
struct ParameterSupport {
  bool tools = true;
  bool parallel_tool_calls = true;
  bool response_format = true;  // other than "text"
  bool logprobs = true;
  bool logit_bias = true;
  bool multiple_choices = true;  // n > 1
  bool best_of = true;           // best_of > 1
  bool suffix = true;
  bool echo = true;
  bool seed = true;
  bool penalties = true;          // presence_penalty, frequency_penalty
  bool extended_sampling = true;  // top_k, min_p, repeat_penalty
  bool stop = true;
  bool reasoning_effort = true;
  bool token_prompt = true;  // prompts as token ids
  bool image = true;
  bool audio = true;
  bool file = true;
  bool opaque_parts = true;
};

// The names of the parameters that the request uses and such a target cannot honour, in a fixed order; content parts
// are named by their type, as in "messages[].content[].image_url".
std::vector<std::string> unsupported_parameters(const Request& request, const ParameterSupport& support);

// No byte-level tokenizer makes more tokens than this of the request's input: bytes of all text as a chat template
// may write it, plus a generous allowance for the template's own words and for each image.
std::uint64_t token_upper_bound(const Request& request);

// ---- answers of an upstream ----

// Whole answers: Started, one ChoiceDelta per choice, UsageReport if there was usage, Done. An answer that is not
// what the dialect promises is upstream_failed; one that carries an "error" member is that error.
Result<std::vector<Event>> parse_chat_answer(std::string_view body);
Result<std::vector<Event>> parse_completion_answer(std::string_view body);

// The typed error for an answer whose HTTP status is not 2xx. `retry_after` is the header's value ("" when absent;
// seconds only: a date needs a clock). The message quotes at most 300 characters of what the upstream said.
Error parse_error_answer(int http_status, std::string_view body, std::string_view retry_after);

// Streamed answers, one SSE event's data at a time.
class ChunkParser {
 public:
  // `choices` is how many answers were asked for: n, times the number of prompts.
  explicit ChunkParser(Endpoint endpoint, std::uint32_t choices = 1) : endpoint_(endpoint), open_choices_(choices) {}

  // The events of one chunk, often one, in order; the caller may move from them, and they live until the next call.
  // "[DONE]" gives Done. An object with an "error" member, or an event named "error", gives Failed. What is not a
  // chunk is an error (upstream_failed). After Done or Failed everything is ignored.
  Result<std::span<Event>> parse(std::string_view data, std::string_view event_name = {});

  // True after Done or Failed.
  bool ended() const { return ended_; }
  // True once every choice has its finish reason: some upstreams end there, without "[DONE]".
  bool finished() const { return open_choices_ == 0; }

 private:
  Result<std::span<Event>> parse_chunk(std::string_view data);
  Result<std::span<Event>> end_with(Error error);
  void count_finished();

  Endpoint endpoint_;
  std::vector<Event> events_;
  bool started_ = false;
  bool ended_ = false;
  std::uint32_t open_choices_;
  std::vector<bool> finished_;  // by choice index
};

// ---- answers to a client ----

// What the server puts in place of the target's own names.
struct AnswerIdentity {
  std::string id;            // "chatcmpl-..."
  std::int64_t created = 0;  // Unix seconds
  std::string model;
};

enum class UsageInStream : std::uint8_t { not_asked, asked };

// Turns the events of a stream into server-sent events in OpenAI's exact chunk shapes.
class ChunkRenderer {
 public:
  ChunkRenderer(Endpoint endpoint, AnswerIdentity identity, UsageInStream usage);

  // The bytes for one event, "data: {...}\n\n" once, several times, or not at all (Started; usage nobody asked for).
  // Done gives the usage chunk, if asked for and known, and "data: [DONE]"; Failed gives an error object and no
  // "[DONE]". The view is valid until the next call.
  std::string_view render(const Event& event);

 private:
  void start(const Started& started);
  void choice(const ChoiceDelta& delta);
  void done();
  template <class Write>
  void chunk(const ExtraFields& answer_extra, Write&& write);
  void set_head(std::string_view system_fingerprint);
  bool first_of(std::uint32_t index);

  Endpoint endpoint_;
  AnswerIdentity identity_;
  UsageInStream usage_mode_;
  std::string bytes_;        // what render() gives out
  std::string head_;         // the members that every chunk begins with
  ExtraFields first_extra_;  // Started.extra, due on the first chunk
  std::optional<UsageReport> usage_;
  std::vector<bool> begun_;  // by choice index
  bool ended_ = false;
};

// Collects events into one whole answer: text, reasoning, refusals and tool-call arguments concatenate by choice and
// index, log-probabilities append, of usage and of unknown members the last wins.
class AnswerBuilder {
 public:
  explicit AnswerBuilder(Endpoint endpoint) : endpoint_(endpoint) {}

  void add(Event event);

  // The error of a Failed event: then there is nothing whole to render.
  const std::optional<Error>& error() const { return error_; }
  bool done() const { return done_; }
  const std::optional<Usage>& usage() const { return usage_; }

  // "chat.completion" or "text_completion".
  std::string render(const AnswerIdentity& identity) const;

 private:
  struct Choice {
    ChoiceDelta whole;
    ExtraFields logprobs;  // lists are kept open, without their last bracket
  };

  Choice& choice(std::uint32_t index);
  void merge(ChoiceDelta&& delta);

  Endpoint endpoint_;
  Started started_;
  std::vector<Choice> choices_;  // by rising index
  std::optional<Usage> usage_;
  std::optional<Error> error_;
  bool done_ = false;
};

// ---- errors and models ----

// The status of an error response. `timeout` is 504 here: a client that is too slow (408) is the HTTP server's to
// answer before there is a request.
int http_status(ErrorCode code);

// {"error":{"message","type","param","code"}} with the type and code of the table in openai_error.cc.
std::string render_error(const Error& error, std::string_view type_override = {});

struct ModelEntry {
  std::string id;
  std::int64_t created = 0;  // Unix seconds
  std::string owned_by;
  ExtraFields extra;
};

std::string render_model_list(std::span<const ModelEntry> models);
std::string render_model(const ModelEntry& model);
Result<std::vector<ModelEntry>> parse_model_list(std::string_view body);

}  // namespace molly::wire
