#pragma once

#include <filesystem>
#include <string>

#include "traces/record.h"

namespace molly::traces {

inline SharedCatalogue sample_catalogue() {
  Catalogue catalogue;
  catalogue.policy.fill(0xAB);
  catalogue.targets = {{"nano", Tier::t0}, {"office", Tier::t1}, {"acme", Tier::t3}};
  catalogue.rules = {"defaults: at most T1", "grant 1 (molly.toml:20) is for public data"};
  return SharedCatalogue(catalogue);
}

// A record that uses every field.
inline DecisionRecord sample_record() {
  static const SharedCatalogue catalogue = sample_catalogue();
  DecisionRecord record;
  record.trace = TraceId::generate();
  record.time = std::chrono::sys_time<std::chrono::milliseconds>(std::chrono::milliseconds(1'803'902'400'123));
  record.milliseconds = 812;
  record.catalogue = catalogue;
  record.member = "ana";
  record.key_id = "0a1b2c3d";
  record.application = "clinic";
  record.stream = true;
  record.model = "auto";
  record.modalities.image = true;
  record.needs_tools = true;
  record.structured = true;
  record.token_upper_bound = 70'000;
  record.exact_tokens = 12'345;
  record.label = "internal/trusted/*/*";
  record.max_tier = Tier::t1;
  record.targets = {
      {0, Verdict::lacks_image, no_rule}, {1, Verdict::cleared, no_rule}, {2, Verdict::confidentiality, 1}};
  record.route = {{1, Reason::ready}};
  record.attempts = {{1, AttemptOutcome::http_error, 503, 12}, {1, AttemptOutcome::answered, 200, 790}};
  record.final_target = 1;
  record.prompt_tokens = 12'345;
  record.completion_tokens = 67;
  record.dropped = {"logit_bias", "seed"};
  record.outcome = Outcome::failed_midstream;
  record.error = ErrorCode::upstream_failed;
  return record;
}

}  // namespace molly::traces
