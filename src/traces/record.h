#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/ids.h"
#include "core/target.h"

// What was decided about one request and why, without a word of its content. Records are small because the
// sentences they need stand once in a catalogue: a record holds indices and codes, rendered when somebody asks.
namespace molly::traces {

// The names behind a record's indices: one for each configuration in force, shared by all its records.
struct Catalogue {
  struct Target {
    std::string name;
    Tier tier = Tier::t0;
    bool operator==(const Target&) const = default;
  };
  Digest policy{};                 // of the policy in force
  std::vector<Target> targets;     // in the order of the record's indices
  std::vector<std::string> rules;  // one sentence for each rule: "pin 2 (molly.toml:14): at most T0"
  bool operator==(const Catalogue&) const = default;
};

// A catalogue with its identity, computed once. Share it; it is not copied into records.
class SharedCatalogue {
 public:
  SharedCatalogue();  // the empty one, for free
  explicit SharedCatalogue(Catalogue catalogue);

  std::uint64_t id() const { return content_->id; }
  const Catalogue& operator*() const { return content_->catalogue; }
  const Catalogue* operator->() const { return &content_->catalogue; }
  // The catalogue as it stands in a segment.
  const std::string& encoded() const { return content_->encoded; }

 private:
  struct Content {
    std::uint64_t id;
    Catalogue catalogue;
    std::string encoded;
  };
  std::shared_ptr<const Content> content_;
};

// Why a target was or was not among the candidates. Stored as numbers: append, never renumber.
enum class Verdict : std::uint8_t {
  cleared = 0,        // by policy, and it fits
  tier_above_limit,   // policy: the request's highest tier
  zone_not_allowed,   // policy: residency
  confidentiality,    // policy: the label is above what may go there
  not_granted,        // policy: T2 and T3 need a grant
  grant_expired,      // policy
  key_scope,          // the key may not use this model or tier
  audit_unavailable,  // policy: fail closed
  tier_unverified,    // the address is not what its tier promises
  not_selected,       // the request names another target
  lacks_image,        // routing
  lacks_audio,
  lacks_file,
  lacks_tools,
  too_long,     // the context cannot hold the request
  unsupported,  // a parameter that the target cannot honour
  unhealthy,    // its circuit breaker is open or its process cannot start
  saturated,    // at its limit of requests at a time
  other,
};
// "tier_above_limit", and "its tier is above the request's limit".
std::string_view to_string(Verdict verdict);
std::string_view to_sentence(Verdict verdict);

inline constexpr std::uint16_t no_rule = 0xFFFF;
inline constexpr std::uint16_t no_target = 0xFFFF;

struct TargetDecision {
  std::uint16_t target = 0;  // index into the catalogue
  Verdict verdict = Verdict::cleared;
  std::uint16_t rule = no_rule;  // index into the catalogue's rules
  bool operator==(const TargetDecision&) const = default;
};

// Why a candidate stands where it does in the route. Append, never renumber.
enum class Reason : std::uint8_t { ready = 0, cold, busy, failing, asked_for_by_name, other };
std::string_view to_sentence(Reason reason);

struct RouteStep {
  std::uint16_t target = 0;
  Reason reason = Reason::ready;
  bool operator==(const RouteStep&) const = default;
};

// How one try of one target ended. Append, never renumber.
enum class AttemptOutcome : std::uint8_t {
  answered = 0,
  refused_connection,
  name_not_resolved,
  tls_failed,
  connect_timeout,
  first_byte_timeout,
  idle_timeout,
  reset,
  http_error,     // see the status
  malformed,      // the answer was not what the protocol promises
  truncated,      // the stream ended before its end mark
  child_failed,   // the model process crashed or could not start
  rejected,       // the request itself is at fault: no other target was tried
  cancelled,      // the client left
  not_permitted,  // the permit did not hold at the door
  saturated,
  other,
  too_long,  // the prompt's tokens do not fit its context
};
std::string_view to_string(AttemptOutcome outcome);

struct Attempt {
  std::uint16_t target = 0;
  AttemptOutcome outcome = AttemptOutcome::answered;
  std::uint16_t http_status = 0;  // 0: none came
  std::uint32_t milliseconds = 0;
  bool operator==(const Attempt&) const = default;
};

// How the request ended for the client. Append, never renumber.
enum class Outcome : std::uint8_t { answered = 0, failed, failed_midstream, refused, cancelled };
std::string_view to_string(Outcome outcome);

enum class EndpointKind : std::uint8_t { chat = 0, completions, other };

struct DecisionRecord {
  TraceId trace = TraceId::from_bytes({});
  std::chrono::sys_time<std::chrono::milliseconds> time{};  // when the request came
  std::uint32_t milliseconds = 0;                           // until its end
  SharedCatalogue catalogue;

  std::string member;  // empty: no key was needed
  std::string key_id;  // 8 hex digits or empty
  std::string application;
  EndpointKind endpoint = EndpointKind::chat;
  bool stream = false;
  std::string model;  // as asked for

  // Capability profile.
  Modalities modalities;
  bool needs_tools = false;
  bool structured = false;
  std::uint64_t token_upper_bound = 0;
  std::optional<std::uint64_t> exact_tokens;  // where a target was asked to count

  // Sovereignty profile.
  std::string label;  // as labels renders it
  Tier max_tier = Tier::t0;

  std::vector<TargetDecision> targets;
  std::vector<RouteStep> route;  // best first
  std::vector<Attempt> attempts;
  std::uint16_t final_target = no_target;
  std::optional<std::uint64_t> prompt_tokens;
  std::optional<std::uint64_t> completion_tokens;
  std::vector<std::string> dropped;  // names of parameters that were not honoured
  Outcome outcome = Outcome::answered;
  std::optional<ErrorCode> error;  // what the client was told
};

// The record as one JSON object, and as the text that `molly explain` prints. Names and sentences come from the
// catalogue.
std::string to_json(const DecisionRecord& record);
std::string to_text(const DecisionRecord& record);

}  // namespace molly::traces
