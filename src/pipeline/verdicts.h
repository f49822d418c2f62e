#pragma once

#include "policy/clearance.h"
#include "routing/route.h"
#include "targets/failure.h"
#include "traces/record.h"

// From the codes of policy, routing and targets to those that a decision record keeps.
namespace molly::pipeline {

traces::Verdict verdict_of(std::string_view exclusion_code);
traces::Verdict verdict_of(routing::Fit fit);
traces::Reason reason_of(Health health);
traces::AttemptOutcome outcome_of(targets::FailureKind kind);

}  // namespace molly::pipeline
