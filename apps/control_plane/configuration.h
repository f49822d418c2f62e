#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/file.h"
#include "egress/proof.h"
#include "pipeline/runtime.h"
#include "policy/rules.h"
#include "server/settings.h"
#include "store/connection.h"
#include "targets/model_list.h"
#include "targets/openai_target.h"
#include "targets/settings.h"
#include "traces/traces.h"

namespace molly::apps {

// All of molly.toml, each section read by its own folder: the one place that knows them all.
struct Settings {
  server::ServerSettings server;
  policy::Rules rules;
  std::vector<targets::TargetSettings> targets;
  std::map<std::string, std::vector<std::string>> aliases;
  targets::ModelSettings models;
  traces::Settings traces;
  std::string log_level = "info";
  egress::PlainLoopback plain_loopback = egress::PlainLoopback::refused;
};

// `model_names` are those of the managed models, which aliases may name too. Every mistake is in the error.
Result<Settings> read_settings(config::Document& document, const std::vector<std::string>& model_names);

// The model that ships with Molly; not_found when the installation lacks it.
Result<targets::ModelEntry> embedded_model();

// The models of this device: those that were added and the embedded one, unless an added one has its name.
Result<std::vector<targets::ModelEntry>> device_models(store::Connection& connection);
std::vector<std::string> names_of(const std::vector<targets::ModelEntry>& models);

// This device as model processes find it: those that an earlier control plane left with our parent hold memory that is
// ours to give.
sizing::Device device_for_models();

// How they are served; one whose file cannot be read is left out and told in `problems`.
struct ManagedModels {
  std::vector<targets::ServedModel> models;
  std::vector<std::string> problems;
};
ManagedModels plan_models(const std::vector<targets::ModelEntry>& models, const targets::ModelSettings& settings,
                          const sizing::Device& device);

// Targets, policy and names as one whole. Targets of `previous` whose settings did not change are kept, with
// their circuit breakers. `supervisor` must know the managed models before the first request.
Result<pipeline::Runtime> build_runtime(const Settings& settings, const ManagedModels& managed,
                                        targets::Supervisor& supervisor, const pipeline::Runtime* previous);

// The same for commands that only want to ask policy: no process, no connection.
Result<std::shared_ptr<const policy::Engine>> build_engine(const Settings& settings, const ManagedModels& managed);

}  // namespace molly::apps
