#include <format>
#include <iostream>

#include "base/text.h"
#include "commands/command.h"
#include "commands/engine_program.h"
#include "commands/json_view.h"
#include "commands/local_models.h"
#include "commands/local_server.h"
#include "sizing/plan_json.h"
#include "targets/supervisor_plan.h"

namespace molly::apps {
namespace {

using base::human_size;

// One model of this device, and how it would be served.
struct Row {
  targets::ModelEntry model;
  gguf::ModelFile header;
  std::optional<targets::PreparedPlan> prepared;  // nothing: its file cannot be read
  std::uint64_t memory_bytes = 0;
  std::string problem;  // empty: it fits

  const sizing::EnginePlan* engine() const {
    return prepared && prepared->plan.engine ? &*prepared->plan.engine : nullptr;
  }
  bool is_useful() const { return problem.empty() && (engine() == nullptr || engine()->useful_context); }
};

struct DevicePlan {
  sizing::Device device;
  std::uint64_t budget_bytes = 0;
  std::vector<Row> rows;
  std::optional<std::size_t> recommended;
};

std::uint64_t number(const std::string& text) { return text.empty() ? 0 : std::stoull(text); }

std::vector<sizing::Accelerator> find_accelerators(const targets::ModelSettings& settings) {
  std::vector<sizing::Accelerator> out;
  const auto engine = targets::find_engine(settings);
  const auto answer = engine ? ask_engine_for_device(*engine) : Result<std::string>(std::string());
  if (!answer) return out;
  for (const std::string& one : json_elements(*answer, "device.accelerators")) {
    out.push_back({.name = json_text(one, "name"),
                   .description = json_text(one, "description"),
                   .kind = json_text(one, "kind"),
                   .total_bytes = number(json_text(one, "total_bytes")),
                   .available_bytes = number(json_text(one, "available_bytes"))});
  }
  return out;
}

// What the running server was given at its start; without one, what it would be given now.
std::uint64_t budget_of(const Globals& globals, const targets::ModelSettings& settings, const sizing::Device& device) {
  const auto server = LocalServer::of(globals);
  const auto status = server ? server->get("/molly/v1/status") : std::unexpected(server.error());
  const std::uint64_t running = status ? number(json_text(status->body, "memory.budget_bytes")) : 0;
  return running > 0 ? running : settings.memory.value_or(sizing::memory_for_models(device));
}

void plan_engine_row(const targets::ServedModel& served, Row& row) {
  row.prepared = targets::PreparedPlan{.plan = served.plan, .context_length = served.plan.context_length};
  row.memory_bytes = served.plan.engine->memory_bytes();
  row.problem = served.plan.engine->problem;
}

void plan_llama_row(const targets::ServedModel& served, std::uint64_t budget, Row& row) {
  auto prepared = targets::prepare_plan(served.plan, {});
  if (!prepared) {
    row.problem = prepared.error().message;
    return;
  }
  row.memory_bytes = prepared->memory_bytes;
  row.prepared = std::move(*prepared);
  if (row.memory_bytes <= budget) return;
  row.problem = "it needs " + human_size(row.memory_bytes) + " and may take " + human_size(budget) + ": " +
                human_size(row.memory_bytes - budget) + " are missing";
}

Row plan_row(const targets::ModelEntry& model, const targets::ModelSettings& settings, const DevicePlan& all) {
  Row row{.model = model};
  auto header = gguf::read_model_file(model.file);
  if (!header) {
    row.problem = header.error().message;
    return row;
  }
  row.header = std::move(*header);
  const auto served = targets::plan_model(model, row.header, settings, all.device);
  if (!served) {
    row.problem = served.error().message;
  } else if (served->plan.engine) {
    plan_engine_row(*served, row);
  } else {
    plan_llama_row(*served, all.budget_bytes, row);
  }
  return row;
}

std::optional<std::size_t> recommended_of(const std::vector<Row>& rows) {
  std::vector<sizing::Candidate> candidates;
  candidates.reserve(rows.size());
  for (const Row& row : rows) {
    candidates.push_back({.parameters = row.header.parameters,
                          .bits_per_weight = sizing::bits_per_weight(row.header),
                          .useful = row.is_useful()});
  }
  return sizing::recommend(candidates);
}

Result<DevicePlan> make_plan(const Globals& globals) {
  const auto models = local_models(globals);
  if (!models) return std::unexpected(models.error());
  targets::ModelSettings settings = model_settings(globals, *models);
  DevicePlan out;
  out.device = sizing::this_device();
  out.device.accelerators = find_accelerators(settings);
  out.budget_bytes = budget_of(globals, settings, out.device);
  settings.memory = out.budget_bytes;
  for (const targets::ModelEntry& model : *models) out.rows.push_back(plan_row(model, settings, out));
  out.recommended = recommended_of(out.rows);
  return out;
}

void write_row(base::JsonWriter& json, const Row& row) {
  json.begin_object().member("name", row.model.name).member("file", row.model.file.string());
  sizing::write_header(json, row.header);
  if (row.prepared) json.member("runtime", to_string(row.prepared->plan.server));
  if (row.engine() != nullptr) {
    sizing::write_plan(json, *row.engine());
  } else {
    json.member("fits", row.problem.empty());
    if (!row.problem.empty()) json.member("problem", row.problem);
    if (row.prepared) {
      json.member("memory_bytes", row.memory_bytes).member("context", row.prepared->context_length);
      json.member("parallel", row.prepared->plan.slots);
    }
  }
  json.end_object();
}

std::string json_of(const DevicePlan& plan) {
  base::JsonWriter json;
  json.begin_object().key("device");
  sizing::write_device(json, plan.device, plan.budget_bytes);
  json.key("models").begin_array();
  for (const Row& row : plan.rows) write_row(json, row);
  json.end_array().key("recommended");
  if (plan.recommended) {
    json.value(plan.rows[*plan.recommended].model.name);
  } else {
    json.null();
  }
  return std::move(json.end_object()).text();
}

std::vector<std::string> cells(const Row& row, bool recommended) {
  std::vector<std::string> out{row.model.name + (recommended ? " *" : ""), row.header.quantization,
                               row.prepared ? std::string(to_string(row.prepared->plan.server)) : "-",
                               row.problem.empty() ? "yes" : "no", human_size(row.memory_bytes)};
  if (!row.prepared) return {out[0], "-", "-", "no", "-", "-", "-", "-", "-", "-"};
  out.push_back(std::to_string(row.prepared->plan.slots) + " x " + std::to_string(row.prepared->context_length));
  if (const sizing::EnginePlan* engine = row.engine()) {
    out.insert(out.end(), {std::string(to_string(engine->kv_type)), human_size(engine->pool_bytes()),
                           std::format("{} of rank {}", engine->resident_adapters, engine->adapter_rank),
                           human_size(engine->warm_bytes)});
  } else {
    out.insert(out.end(), {"f16", "-", "-", "-"});
  }
  return out;
}

void print(const DevicePlan& plan) {
  const base::MemoryState& memory = plan.device.memory;
  std::cout << std::format("this device: {} cores; {} of memory, {} available, {} for models\n", plan.device.cores,
                           human_size(memory.total_bytes), human_size(memory.available_bytes),
                           human_size(plan.budget_bytes));
  for (const sizing::Accelerator& one : plan.device.accelerators) {
    std::cout << std::format("{} {} ({}): {}, {} available\n", one.kind, one.name, one.description,
                             human_size(one.total_bytes), human_size(one.available_bytes));
  }
  Table table(
      {"MODEL", "QUANTIZATION", "RUNTIME", "FITS", "MEMORY", "REQUESTS x CONTEXT", "KV", "POOL", "ADAPTERS", "WARM"});
  for (std::size_t i = 0; i < plan.rows.size(); ++i) table.add(cells(plan.rows[i], plan.recommended == i));
  std::cout << '\n' << table.text();
  for (const Row& row : plan.rows) {
    if (!row.problem.empty()) std::cout << row.model.name << " cannot be served: " << row.problem << '\n';
  }
  if (plan.recommended) std::cout << "* recommended\n";
}

}  // namespace

void add_plan(CLI::App& app, Globals& globals) {
  CLI::App* command = add_command(app, globals, "plan", "say how each model of this device would be served on it");
  command->footer(std::string(sizing::recommendation_rule));
  command->callback([&globals] {
    const auto plan = make_plan(globals);
    if (!plan) return fail(globals, plan.error());
    if (globals.json) {
      std::cout << json_of(*plan) << '\n';
    } else {
      print(*plan);
    }
  });
}

}  // namespace molly::apps
