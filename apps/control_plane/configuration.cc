#include "control_plane/configuration.h"

#include <cstdlib>

#include "base/os/memory.h"
#include "base/os/process.h"
#include "targets/managed_target.h"

namespace molly::apps {
namespace {

constexpr std::array<std::string_view, 5> log_levels{"debug", "info", "warning", "error", "off"};

policy::TargetFacts facts_of(const TargetDescription& description, std::string proof) {
  return {.name = description.name,
          .tier = description.tier,
          .zone = description.zone,
          .provider = description.provider,
          .model = description.model,
          .proven = true,
          .proof = std::move(proof)};
}

constexpr std::string_view managed_proof = "a model process that Molly itself started";

std::shared_ptr<targets::OpenAiTarget> kept(const targets::TargetSettings& wanted, const pipeline::Runtime* previous) {
  if (previous == nullptr) return nullptr;
  for (const auto& target : previous->targets) {
    auto same = std::dynamic_pointer_cast<targets::OpenAiTarget>(target);
    if (same && same->settings() == wanted) return same;
  }
  return nullptr;
}

using RemoteTargets = std::vector<std::shared_ptr<targets::OpenAiTarget>>;

Result<RemoteTargets> make_targets(const Settings& settings, const pipeline::Runtime* previous) {
  RemoteTargets out;
  for (const targets::TargetSettings& wanted : settings.targets) {
    if (auto same = kept(wanted, previous)) {
      out.push_back(std::move(same));
      continue;
    }
    auto made = targets::OpenAiTarget::create(wanted, settings.plain_loopback);
    if (!made) {
      made.error().message = "target '" + wanted.description.name + "': " + made.error().message;
      return std::unexpected(made.error());
    }
    out.push_back(std::move(*made));
  }
  return out;
}

Result<std::shared_ptr<const policy::Engine>> make_engine(const policy::Rules& rules, const ManagedModels& managed,
                                                          const RemoteTargets& remote) {
  std::vector<policy::TargetFacts> facts;
  facts.reserve(managed.models.size() + remote.size());
  for (const targets::ServedModel& model : managed.models) {
    facts.push_back(facts_of(model.description, std::string(managed_proof)));
  }
  for (const auto& target : remote) facts.push_back(facts_of(target->description(), target->proof()));
  return policy::Engine::create(rules, std::move(facts));
}

traces::SharedCatalogue catalogue_of(const policy::Engine& engine) {
  traces::Catalogue catalogue;
  catalogue.policy = engine.digest();
  for (const policy::TargetFacts& facts : engine.targets()) catalogue.targets.push_back({facts.name, facts.tier});
  catalogue.rules = engine.rule_names();
  return traces::SharedCatalogue(std::move(catalogue));
}

void check_targets(config::Section root, const std::vector<targets::TargetSettings>& wanted,
                   egress::PlainLoopback plain) {
  auto sections = root.tables("target");
  for (std::size_t i = 0; i < wanted.size() && i < sections.size(); ++i) {
    if (wanted[i].url.empty()) continue;
    if (auto made = targets::OpenAiTarget::create(wanted[i], plain); !made) {
      sections[i].refuse(made.error().field, made.error().message);
    }
  }
}

}  // namespace

Result<Settings> read_settings(config::Document& document, const std::vector<std::string>& model_names) {
  config::Section root = document.root();
  Settings out;
  out.server = server::read_server(root);
  out.rules = policy::read_rules(root);
  out.targets = targets::read_targets(root);
  std::vector<std::string> known = model_names;
  for (const auto& target : out.targets) {
    if (std::ranges::contains(model_names, target.description.name)) {
      root.refuse("target",
                  "'" + target.description.name + "' is the name of a model of this device; name the target otherwise");
    }
    known.push_back(target.description.name);
  }
  out.aliases = targets::read_aliases(root, known);
  out.models = targets::read_models(root);
  out.traces = traces::read_settings(root.table("traces"));
  root.table("audit");
  config::Section log = root.table("log");
  out.log_level = log.choice("level", log_levels).value_or(out.log_level);
  // For tests: a scripted external API on a loopback port. Not in the documentation, and never on by itself.
  if (std::getenv("MOLLY_TEST_PLAIN_LOOPBACK_T3") != nullptr) out.plain_loopback = egress::PlainLoopback::allowed_at_t3;
  check_targets(root, out.targets, out.plain_loopback);
  if (auto verdict = document.finish(); !verdict) return std::unexpected(verdict.error());
  if (auto valid = policy::validate(out.rules); !valid) return std::unexpected(valid.error());
  return out;
}

Result<targets::ModelEntry> embedded_model() {
  const auto program = base::own_program();
  if (!program) return std::unexpected(program.error());
  const std::filesystem::path folder = program->parent_path();
  for (const std::filesystem::path& candidate :
       {folder / "../../../models/nano.gguf", folder / "../share/molly/models/nano.gguf"}) {
    std::error_code failed;
    const auto file = std::filesystem::canonical(candidate, failed);
    if (!failed) return targets::ModelEntry{.name = "nano", .file = file, .projector = {}};
  }
  return failure(ErrorCode::not_found, "the embedded model models/nano.gguf is not part of this installation");
}

Result<std::vector<targets::ModelEntry>> device_models(store::Connection& connection) {
  auto models = targets::list_models(connection);
  if (!models) return models;
  if (auto embedded = embedded_model()) {
    if (!std::ranges::contains(*models, embedded->name, &targets::ModelEntry::name))
      models->push_back(std::move(*embedded));
  }
  return models;
}

std::vector<std::string> names_of(const std::vector<targets::ModelEntry>& models) {
  std::vector<std::string> names;
  names.reserve(models.size());
  for (const targets::ModelEntry& model : models) names.push_back(model.name);
  return names;
}

sizing::Device device_for_models() {
  sizing::Device device = sizing::this_device();
  const std::uint64_t available = device.memory.available_bytes + base::bytes_of_siblings();
  device.memory.available_bytes = std::min(available, device.memory.total_bytes);
  return device;
}

ManagedModels plan_models(const std::vector<targets::ModelEntry>& models, const targets::ModelSettings& settings,
                          const sizing::Device& device) {
  ManagedModels out;
  if (const auto embedded = embedded_model(); !embedded) out.problems.push_back(embedded.error().message);
  for (const targets::ModelEntry& model : models) {
    auto planned = targets::plan_model(model, settings, device);
    if (planned) {
      out.models.push_back(std::move(*planned));
    } else {
      out.problems.push_back("model '" + model.name + "': " + planned.error().message);
    }
  }
  return out;
}

Result<pipeline::Runtime> build_runtime(const Settings& settings, const ManagedModels& managed,
                                        targets::Supervisor& supervisor, const pipeline::Runtime* previous) {
  const auto remote = make_targets(settings, previous);
  if (!remote) return std::unexpected(remote.error());
  auto engine = make_engine(settings.rules, managed, *remote);
  if (!engine) return std::unexpected(engine.error());
  pipeline::Runtime out;
  for (const targets::ServedModel& model : managed.models) {
    out.targets.push_back(
        std::make_shared<targets::ManagedTarget>(model.description, model.support, model.plan.server, supervisor));
  }
  out.targets.insert(out.targets.end(), remote->begin(), remote->end());
  out.aliases.insert(settings.aliases.begin(), settings.aliases.end());
  out.catalogue = catalogue_of(**engine);
  out.engine = std::move(*engine);
  return out;
}

Result<std::shared_ptr<const policy::Engine>> build_engine(const Settings& settings, const ManagedModels& managed) {
  const auto remote = make_targets(settings, nullptr);
  if (!remote) return std::unexpected(remote.error());
  return make_engine(settings.rules, managed, *remote);
}

}  // namespace molly::apps
