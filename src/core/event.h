#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/error.h"
#include "core/json.h"
#include "core/request.h"

// One typed stream of events for streamed and whole answers alike. A whole answer is
// Started, one ChoiceDelta per choice with everything in it, UsageReport, Done.
namespace molly {

enum class FinishReason : std::uint8_t { stop, length, tool_calls, content_filter, function_call, error, other };

struct Usage {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t completion_tokens = 0;
  std::optional<std::uint64_t> cached_tokens;     // prompt_tokens_details.cached_tokens
  std::optional<std::uint64_t> reasoning_tokens;  // completion_tokens_details.reasoning_tokens
  ExtraFields extra;                              // further members, including further details objects
};

struct ToolCallDelta {
  std::uint32_t index = 0;
  std::string id;              // set once, on the first delta of a call
  std::string kind;            // set once
  std::string name;            // set once
  std::string arguments;       // a fragment; fragments of one index concatenate
  ExtraFields extra;           // beside "function"
  ExtraFields function_extra;  // inside "function"
};

struct Started {
  std::string id;     // the target's own id; the server replaces it
  std::string model;  // the target's own name of the model
  std::int64_t created = 0;
  std::string system_fingerprint;
  ExtraFields extra;  // further top-level members of a whole answer or of a stream's first chunk, e.g. "timings"
};

struct ChoiceDelta {
  std::uint32_t index = 0;
  std::optional<Role> role;
  std::optional<std::string> text;
  std::optional<std::string> reasoning;
  std::optional<std::string> refusal;
  std::vector<ToolCallDelta> tool_calls;
  RawJson logprobs;  // the choice's logprobs object as it came; empty text: none
  std::optional<FinishReason> finish;
  std::string finish_name;    // the spelling when finish is FinishReason::other
  ExtraFields extra;          // members of the choice
  ExtraFields message_extra;  // members of the message or delta
  ExtraFields answer_extra;   // further top-level members of this chunk; those of the first one are in Started
};

struct UsageReport {
  Usage usage;
  ExtraFields answer_extra;
};

// The stream ended by an error after its first byte; before it, errors are Result values.
struct Failed {
  Error error;
};

struct Done {};

using Event = std::variant<Started, ChoiceDelta, UsageReport, Failed, Done>;

// True for the events that carry something the client asked for: after the first of them a request
// is committed to its target and can no longer fall back.
bool commits(const Event& event);

}  // namespace molly
