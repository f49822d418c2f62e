#include <iostream>

#include "base/json_writer.h"
#include "commands/command.h"
#include "commands/opened.h"
#include "control_plane/configuration.h"
#include "pipeline/caller.h"
#include "policy/explain.h"

namespace molly::apps {
namespace {

struct RequestOptions {
  std::string member;
  std::vector<std::string> roles;
  std::string application;
  std::string model = "auto";
  std::string confidentiality;
  std::string zones;
  std::string max_tier;
};

std::optional<std::string_view> given(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional<std::string_view>(text);
}

Result<std::shared_ptr<const policy::Engine>> engine_of(const Globals& globals) {
  const auto opened = Opened::open(globals);
  if (!opened) return std::unexpected(opened.error());
  auto reader = (*opened)->database().reader();
  if (!reader) return std::unexpected(reader.error());
  auto found = config::find_config(globals.config);
  if (!found) return std::unexpected(found.error());
  const auto models = device_models(*reader);
  if (!models) return std::unexpected(models.error());
  const auto settings = read_settings(found->document, names_of(*models));
  if (!settings) return std::unexpected(settings.error());
  return build_engine(*settings, plan_models(*models, settings->models, sizing::this_device()));
}

void print_json(const policy::Decision& decision) {
  base::JsonWriter json;
  json.begin_object().member("policy", decision.policy_digest).member("label", decision.label);
  json.member("declared_public", decision.declared_public).key("label_sources").begin_array();
  for (const std::string& source : decision.label_sources) json.value(source);
  json.end_array().key("targets").begin_array();
  for (const policy::TargetDecision& target : decision.targets) {
    json.begin_object()
        .member("target", target.target)
        .member("tier", to_string(target.tier))
        .member("zone", target.zone);
    json.member("allowed", target.allowed).member("code", target.code).member("why", target.sentence);
    json.member("proof", target.proof).end_object();
  }
  json.end_array().end_object();
  std::cout << json.text() << '\n';
}

Result<void> explain(const Globals& globals, const RequestOptions& options) {
  const auto engine = engine_of(globals);
  if (!engine) return std::unexpected(engine.error());
  const auto caller = pipeline::parse_caller(given(options.application), given(options.confidentiality),
                                             given(options.zones), given(options.max_tier), std::nullopt);
  if (!caller) return std::unexpected(caller.error());
  auto profile = pipeline::sovereignty_profile(*caller, options.model);
  profile.member = options.member;
  profile.roles = options.roles;
  const auto decision = policy::explain((*engine)->clear(profile, std::chrono::system_clock::now()));
  if (globals.json) {
    print_json(decision);
  } else {
    std::cout << policy::to_text(decision);
  }
  return {};
}

}  // namespace

void add_policy(CLI::App& app, Globals& globals) {
  CLI::App* policy = app.add_subcommand("policy", "ask what the policy allows");
  policy->require_subcommand(1);
  CLI::App* command =
      add_command(*policy, globals, "explain", "which targets a request may reach, and why not the others");
  auto options = std::make_shared<RequestOptions>();
  command->add_option("--member", options->member, "who asks");
  command->add_option("--role", options->roles, "a role of that member; may be repeated");
  command->add_option("--application", options->application, "as x-molly-application");
  command->add_option("--model", options->model, "the model asked for")->capture_default_str();
  command->add_option("--confidentiality", options->confidentiality, "public, internal, confidential or secret");
  command->add_option("--zones", options->zones, "allowed zones, e.g. device,lan");
  command->add_option("--max-tier", options->max_tier, "T0, T1, T2 or T3");
  command->callback([&globals, options] {
    if (const auto done = explain(globals, *options); !done) fail(globals, done.error());
  });
  CLI::App* check = add_command(*policy, globals, "check", "read the configuration and say what is wrong with it");
  check->callback([&globals] {
    const auto engine = engine_of(globals);
    if (!engine) return fail(globals, engine.error());
    if (globals.json) {
      std::cout << R"({"valid":true,"policy":")" << hex((*engine)->digest()) << "\"}\n";
    } else {
      std::cout << "valid: " << (*engine)->targets().size() << " targets, policy " << hex((*engine)->digest()) << '\n';
    }
  });
}

}  // namespace molly::apps
