#include "traces/record.h"

#include "traces/encoding.h"

namespace molly::traces {
namespace {

struct Wording {
  std::string_view name;
  std::string_view sentence;
};

// In the order of the numbers; the last one stands for every number from a newer version too.
constexpr std::array verdicts{
    Wording{"cleared", "cleared"},
    Wording{"tier_above_limit", "its tier is above the request's limit"},
    Wording{"zone_not_allowed", "its zone is not among those that the request allows"},
    Wording{"confidentiality", "the request is more confidential than what may go there"},
    Wording{"not_granted", "no grant opens it for this request"},
    Wording{"grant_expired", "the grant that opened it has expired"},
    Wording{"key_scope", "the key may not use it"},
    Wording{"audit_unavailable", "the audit log cannot be written, so nothing leaves"},
    Wording{"tier_unverified", "its address does not prove its tier"},
    Wording{"not_selected", "the request names another model"},
    Wording{"lacks_image", "it does not read images"},
    Wording{"lacks_audio", "it does not hear audio"},
    Wording{"lacks_file", "it does not read files"},
    Wording{"lacks_tools", "it does not call tools"},
    Wording{"too_long", "the request does not fit its context"},
    Wording{"unsupported", "it does not honour a parameter of the request"},
    Wording{"unhealthy", "it is out of service"},
    Wording{"saturated", "it is at its limit of requests at a time"},
    Wording{"other", "excluded"},
};
static_assert(verdicts.size() == static_cast<std::size_t>(Verdict::other) + 1);

constexpr std::array<std::string_view, 6> reasons{
    "ready", "has to be started first", "busy", "failing, tried last", "asked for by name", "chosen"};
static_assert(reasons.size() == static_cast<std::size_t>(Reason::other) + 1);

constexpr std::array<std::string_view, 18> attempt_outcomes{"answered",
                                                            "refused_connection",
                                                            "name_not_resolved",
                                                            "tls_failed",
                                                            "connect_timeout",
                                                            "first_byte_timeout",
                                                            "idle_timeout",
                                                            "reset",
                                                            "http_error",
                                                            "malformed",
                                                            "truncated",
                                                            "child_failed",
                                                            "rejected",
                                                            "cancelled",
                                                            "not_permitted",
                                                            "saturated",
                                                            "other",
                                                            "too_long"};
static_assert(attempt_outcomes.size() == static_cast<std::size_t>(AttemptOutcome::too_long) + 1);

constexpr std::array<std::string_view, 5> outcomes{"answered", "failed", "failed_midstream", "refused", "cancelled"};
static_assert(outcomes.size() == static_cast<std::size_t>(Outcome::cancelled) + 1);

// A code that a later version wrote reads as `unknown`.
template <class Table, class Code>
const auto& worded(const Table& table, Code code, Code unknown) {
  const auto place = static_cast<std::size_t>(code);
  return table[place < table.size() ? place : static_cast<std::size_t>(unknown)];
}

}  // namespace

std::string_view to_string(Verdict verdict) { return worded(verdicts, verdict, Verdict::other).name; }
std::string_view to_sentence(Verdict verdict) { return worded(verdicts, verdict, Verdict::other).sentence; }
std::string_view to_sentence(Reason reason) { return worded(reasons, reason, Reason::other); }
std::string_view to_string(AttemptOutcome outcome) { return worded(attempt_outcomes, outcome, AttemptOutcome::other); }
std::string_view to_string(Outcome outcome) { return worded(outcomes, outcome, Outcome::failed); }

SharedCatalogue::SharedCatalogue() {
  static const SharedCatalogue none{Catalogue{}};
  content_ = none.content_;
}

SharedCatalogue::SharedCatalogue(Catalogue catalogue) {
  std::string encoded = encode_catalogue(catalogue);
  const std::uint64_t id = hash(encoded);
  content_ = std::make_shared<const Content>(id, std::move(catalogue), std::move(encoded));
}

}  // namespace molly::traces
