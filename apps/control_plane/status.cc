#include "control_plane/status.h"

#include <unistd.h>

#include "base/json_writer.h"

namespace molly::apps {
namespace {

const targets::ModelStatus* find_model(const targets::SupervisorStatus& supervisor, const std::string& name) {
  for (const targets::ModelStatus& model : supervisor.models) {
    if (model.name == name) return &model;
  }
  return nullptr;
}

void write_model(base::JsonWriter& json, const targets::ModelStatus& model) {
  json.key("process").begin_object();
  json.member("state", to_string(model.state)).member("reason", model.reason).member("pid", model.pid);
  json.member("memory_bytes", model.memory_bytes).member("in_flight", model.leases).member("waiting", model.waiting);
  json.member("failed_starts", model.attempts);
  if (model.loaded) json.member("loaded", *model.loaded);
  if (model.retry_after) json.member("retry_after_ms", model.retry_after->count());
  json.end_object();
}

void write_target(base::JsonWriter& json, const targets::Target& target, const targets::SupervisorStatus& supervisor) {
  const TargetDescription& description = target.description();
  const auto now = std::chrono::steady_clock::now();
  json.begin_object().member("name", description.name).member("tier", to_string(description.tier));
  json.member("zone", description.zone).member("driver", description.driver).member("model", description.model);
  json.member("health", to_string(target.health(now))).member("reason", target.health_reason(now));
  if (description.context_length) json.member("context_length", *description.context_length);
  if (const auto* model = find_model(supervisor, description.name)) write_model(json, *model);
  json.end_object();
}

}  // namespace

std::string status_json(const StatusInput& input) {
  base::JsonWriter json;
  json.begin_object().member("version", MOLLY_VERSION).member("pid", static_cast<std::int64_t>(::getpid()));
  json.member("in_flight", input.in_flight).member("policy", hex(input.runtime.engine->digest()));
  json.key("targets").begin_array();
  for (const auto& target : input.runtime.targets) write_target(json, *target, input.supervisor);
  json.end_array().key("aliases").begin_object();
  for (const auto& [alias, names] : input.runtime.aliases) {
    json.key(alias).begin_array();
    for (const std::string& name : names) json.value(name);
    json.end_array();
  }
  json.end_object().key("memory").begin_object();
  json.member("budget_bytes", input.supervisor.memory_budget).member("used_bytes", input.supervisor.memory_used);
  json.end_object().key("audit").begin_object();
  json.member("records", input.audit.records)
      .member("synced", input.audit.synced)
      .member("failing", input.audit.failing);
  json.member("reason", input.audit.reason).end_object().key("configuration").begin_object();
  json.member("file", input.config_path).member("problem", input.config_problem).end_object().end_object();
  return std::move(json).text();
}

}  // namespace molly::apps
