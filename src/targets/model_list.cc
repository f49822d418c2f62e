#include "targets/model_list.h"

#include <algorithm>

#include "base/os/process.h"
#include "base/os/processors.h"
#include "gguf/tool_call_form.h"
#include "sizing/engine_fit.h"

namespace molly::targets {
namespace {

constexpr std::uint32_t usual_parallel = 4;

std::uint32_t trained_context(const gguf::ModelFile& header) {
  constexpr std::uint64_t most = 1U << 30;
  return static_cast<std::uint32_t>(
      std::min(header.context_length > 0 ? header.context_length : sizing::usual_context, most));
}

std::uint32_t threads_for(const ModelSettings& settings) {
  if (settings.threads > 0 || settings.cpus.empty()) return settings.threads;
  const auto cpus = base::parse_processors(settings.cpus);
  return cpus ? static_cast<std::uint32_t>(cpus->size()) : 0;
}

sizing::EngineWishes engine_wishes(const gguf::ModelFile& header, const ModelSettings& settings) {
  return {.memory_bytes = settings.memory.value_or(0),
          .threads = threads_for(settings),
          .context = std::min(settings.context, trained_context(header)),
          .parallel = settings.parallel,
          .most_parallel = usual_parallel};
}

void plan_process(const gguf::ModelFile& header, const ModelSettings& settings, const sizing::Device& device,
                  ModelPlan& plan) {
  const std::uint32_t wanted = settings.context > 0 ? settings.context : sizing::usual_context;
  plan.context_length = std::min(wanted, trained_context(header));
  plan.slots = settings.parallel > 0 ? settings.parallel : usual_parallel;
  plan.threads = threads_for(settings);
  plan.cpus = settings.cpus;
  if (plan.server != ModelServer::molly_engine) return;
  plan.engine = sizing::plan_engine(device, header, engine_wishes(header, settings));
  plan.context_length = plan.engine->context;
  plan.slots = plan.engine->parallel;
  plan.threads = plan.engine->threads;
}

// A model that calls tools in a form that the engine does not know keeps llama-server unless the owner says otherwise.
Result<ModelServer> choose_server(const gguf::ModelFile& header, const ModelEntry& model,
                                  const ModelSettings& settings) {
  if (settings.runtime == ModelRuntime::llama_server) return ModelServer::llama_server;
  auto unfit = sizing::unfit_for_engine(header);
  if (!unfit && !model.projector.empty()) unfit = "it takes images";
  if (!unfit && !find_engine(settings)) unfit = "there is no program " + settings.engine.string();
  if (settings.runtime == ModelRuntime::molly_engine) {
    if (!unfit) return ModelServer::molly_engine;
    return failure(ErrorCode::invalid_request, "molly-engine cannot serve it: " + *unfit, "runtime");
  }
  const bool knows_calls = gguf::tool_call_form(header.chat_template) != gguf::ToolCallForm::other;
  return !unfit && knows_calls ? ModelServer::molly_engine : ModelServer::llama_server;
}

wire::ParameterSupport support_of(const gguf::ModelFile& header, const ModelEntry& model, ModelServer server) {
  wire::ParameterSupport support;
  const gguf::ToolCallForm form = gguf::tool_call_form(header.chat_template);
  const bool knows_calls = server == ModelServer::llama_server || form != gguf::ToolCallForm::other;
  support.tools = form != gguf::ToolCallForm::none && knows_calls;
  support.best_of = false;
  support.suffix = false;
  support.echo = false;
  support.image = !model.projector.empty();
  support.audio = false;
  support.file = false;
  support.opaque_parts = false;
  return support;
}

}  // namespace

store::Schema model_schema() {
  return {"targets",
          {{1, "models",
            "CREATE TABLE models (name TEXT PRIMARY KEY, file TEXT NOT NULL, projector TEXT NOT NULL) STRICT;"}}};
}

Result<std::vector<ModelEntry>> list_models(store::Connection& connection) {
  auto rows = connection.query<std::string, std::string, std::string>(
      "SELECT name, file, projector FROM models ORDER BY rowid");
  if (!rows) return std::unexpected(rows.error());
  std::vector<ModelEntry> out;
  for (auto& [name, file, projector] : *rows) out.push_back({name, file, projector});
  return out;
}

Result<void> add_model(store::Connection& connection, const ModelEntry& model) {
  const auto taken = connection.query<std::int64_t>("SELECT count(*) FROM models WHERE name = ?", model.name);
  if (!taken) return std::unexpected(taken.error());
  if (std::get<0>(taken->front()) > 0) {
    return failure(ErrorCode::conflict,
                   "a model named '" + model.name + "' was added already; choose another --name or remove it first");
  }
  const auto done = connection.execute("INSERT INTO models (name, file, projector) VALUES (?, ?, ?)", model.name,
                                       model.file.string(), model.projector.string());
  if (!done) return std::unexpected(done.error());
  return {};
}

Result<void> remove_model(store::Connection& connection, const std::string& name) {
  const auto changed = connection.execute("DELETE FROM models WHERE name = ?", name);
  if (!changed) return std::unexpected(changed.error());
  if (*changed == 0) return failure(ErrorCode::not_found, "no model named '" + name + "' was added");
  return {};
}

std::string default_model_name(const std::filesystem::path& file) {
  std::string name = file.stem().string();
  for (char& c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
    if (c >= 'A' && c <= 'Z') {
      c = static_cast<char>(c - 'A' + 'a');
    } else if (!letter) {
      c = '-';
    }
  }
  return name.substr(0, 64);
}

std::optional<std::filesystem::path> find_engine(const ModelSettings& settings) {
  if (!settings.engine.has_parent_path()) {
    const auto own = base::own_program();
    std::error_code ignored;
    auto beside = own ? own->parent_path() / settings.engine : std::filesystem::path();
    if (std::filesystem::is_regular_file(beside, ignored)) return beside;
  }
  auto found = base::find_program(settings.engine.string());
  if (!found) return std::nullopt;
  return std::move(*found);
}

Result<ServedModel> plan_model(const ModelEntry& model, const ModelSettings& settings, const sizing::Device& device) {
  const auto header = gguf::read_model_file(model.file);
  if (!header) return std::unexpected(header.error());
  return plan_model(model, *header, settings, device);
}

Result<ServedModel> plan_model(const ModelEntry& model, const gguf::ModelFile& header, const ModelSettings& settings,
                               const sizing::Device& device) {
  const auto server = choose_server(header, model, settings);
  if (!server) return std::unexpected(server.error());
  ServedModel out;
  out.plan = {.name = model.name,
              .file = model.file,
              .projector = model.projector,
              .server = *server,
              .cpus = {},
              .engine = {},
              .further_arguments = {}};
  plan_process(header, settings, device, out.plan);
  out.support = support_of(header, model, *server);
  out.description = {.name = model.name,
                     .tier = Tier::t0,
                     .zone = "device",
                     .driver = "managed",
                     .model = model.name,
                     .adapter = {},
                     .modalities = {.text = true, .image = out.support.image},
                     .tools = out.support.tools,
                     .context_length = static_cast<std::uint32_t>(out.plan.context_length),
                     .price = std::nullopt,
                     .provider = {}};
  return out;
}

}  // namespace molly::targets
