#include "pipeline/verdicts.h"

#include <array>
#include <utility>

namespace molly::pipeline {

traces::Verdict verdict_of(std::string_view exclusion_code) {
  using traces::Verdict;
  static constexpr std::array<std::pair<std::string_view, Verdict>, 9> codes{{
      {"unproven", Verdict::tier_unverified},
      {"zone", Verdict::zone_not_allowed},
      {"ceiling", Verdict::tier_above_limit},
      {"not_opened", Verdict::not_granted},
      {"grant_expired", Verdict::grant_expired},
      {"confidentiality", Verdict::confidentiality},
      {"undeclared", Verdict::confidentiality},
      {"tainted", Verdict::confidentiality},
      {"removed", Verdict::other},
  }};
  for (const auto& [code, verdict] : codes) {
    if (code == exclusion_code) return verdict;
  }
  return Verdict::not_granted;
}

traces::Verdict verdict_of(routing::Fit fit) {
  using routing::Fit;
  using traces::Verdict;
  switch (fit) {
    case Fit::fits:
    case Fit::unknown_context:
    case Fit::count_needed: return Verdict::cleared;
    case Fit::not_selected: return Verdict::not_selected;
    case Fit::not_cleared: return Verdict::not_granted;
    case Fit::lacks_image: return Verdict::lacks_image;
    case Fit::lacks_audio: return Verdict::lacks_audio;
    case Fit::lacks_file: return Verdict::lacks_file;
    case Fit::lacks_tools: return Verdict::lacks_tools;
  }
  return Verdict::other;
}

traces::Reason reason_of(Health health) {
  switch (health) {
    case Health::ready: return traces::Reason::ready;
    case Health::cold: return traces::Reason::cold;
    case Health::busy: return traces::Reason::busy;
    case Health::failing: return traces::Reason::failing;
  }
  return traces::Reason::other;
}

traces::AttemptOutcome outcome_of(targets::FailureKind kind) {
  using targets::FailureKind;
  using traces::AttemptOutcome;
  switch (kind) {
    case FailureKind::none: return AttemptOutcome::answered;
    case FailureKind::refused: return AttemptOutcome::refused_connection;
    case FailureKind::dns: return AttemptOutcome::name_not_resolved;
    case FailureKind::tls: return AttemptOutcome::tls_failed;
    case FailureKind::connect_timeout: return AttemptOutcome::connect_timeout;
    case FailureKind::first_byte_timeout: return AttemptOutcome::first_byte_timeout;
    case FailureKind::stall: return AttemptOutcome::idle_timeout;
    case FailureKind::reset: return AttemptOutcome::reset;
    case FailureKind::truncated: return AttemptOutcome::truncated;
    case FailureKind::garbage: return AttemptOutcome::malformed;
    case FailureKind::rate_limited:
    case FailureKind::server_error:
    case FailureKind::denied:
    case FailureKind::bad_credentials: return AttemptOutcome::http_error;
    case FailureKind::rejected: return AttemptOutcome::rejected;
    case FailureKind::too_long: return AttemptOutcome::too_long;
    case FailureKind::busy: return AttemptOutcome::saturated;
    case FailureKind::not_ready: return AttemptOutcome::child_failed;
    case FailureKind::circuit_open: return AttemptOutcome::other;
    case FailureKind::unproven:
    case FailureKind::unauthorised: return AttemptOutcome::not_permitted;
  }
  return AttemptOutcome::other;
}

}  // namespace molly::pipeline
