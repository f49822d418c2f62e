#include "engine/plan.h"

#include <filesystem>
#include <format>
#include <iostream>

#include "base/text.h"
#include "engine/model/accelerators.h"
#include "engine/wishes.h"
#include "sizing/plan_json.h"

namespace molly::apps {
namespace {

using base::human_size;

struct PlanOptions {
  WishOptions wishes;
  std::vector<std::filesystem::path> models;
  bool json = false;
};

struct PlannedFile {
  std::filesystem::path file;
  gguf::ModelFile header;
  sizing::EnginePlan plan;
};

struct Plans {
  sizing::Device device;
  std::uint64_t budget_bytes = 0;
  std::vector<PlannedFile> models;
  std::optional<std::size_t> recommended;
};

std::optional<std::size_t> recommended_of(const std::vector<PlannedFile>& models) {
  std::vector<sizing::Candidate> candidates;
  candidates.reserve(models.size());
  for (const PlannedFile& model : models) {
    candidates.push_back({.parameters = model.header.parameters,
                          .bits_per_weight = sizing::bits_per_weight(model.header),
                          .useful = model.plan.fits() && model.plan.useful_context});
  }
  return sizing::recommend(candidates);
}

Result<Plans> make_plans(const PlanOptions& options) {
  if (auto chosen = choose_cpus(options.wishes); !chosen) return std::unexpected(chosen.error());
  const auto backend = engine::Backend::open({});
  if (!backend) return std::unexpected(backend.error());
  Plans out;
  out.device = sizing::this_device();
  out.device.accelerators = engine::accelerators(**backend);
  const sizing::EngineWishes wishes = wishes_of(options.wishes);
  out.budget_bytes = wishes.memory_bytes > 0 ? wishes.memory_bytes : sizing::memory_for_models(out.device);
  for (const auto& file : options.models) {
    auto header = gguf::read_model_file(file);
    if (!header) return std::unexpected(header.error());
    auto plan = sizing::plan_engine(out.device, *header, wishes);
    out.models.push_back({file, std::move(*header), std::move(plan)});
  }
  out.recommended = recommended_of(out.models);
  return out;
}

std::string json_of(const Plans& plans) {
  base::JsonWriter json;
  json.begin_object().key("device");
  sizing::write_device(json, plans.device, plans.budget_bytes);
  json.key("models").begin_array();
  for (const PlannedFile& model : plans.models) {
    json.begin_object().member("file", model.file.string());
    sizing::write_header(json, model.header);
    sizing::write_plan(json, model.plan);
    json.end_object();
  }
  json.end_array().key("recommended");
  if (plans.recommended) {
    json.value(plans.models[*plans.recommended].file.string());
  } else {
    json.null();
  }
  return std::move(json.end_object()).text();
}

std::string device_text(const Plans& plans) {
  const sizing::Device& device = plans.device;
  std::string out = std::format("this device: {} cores; {} of memory, {} available, {} for models\n", device.cores,
                                human_size(device.memory.total_bytes), human_size(device.memory.available_bytes),
                                human_size(plans.budget_bytes));
  for (const sizing::Accelerator& one : device.accelerators) {
    out +=
        std::format("{} {} ({}): {}, {} available; molly-engine computes on the processor, llama-server uses it\n",
                    one.kind, one.name, one.description, human_size(one.total_bytes), human_size(one.available_bytes));
  }
  return out;
}

std::string figures_text(const sizing::EnginePlan& plan) {
  return std::format(
      "  memory    {}: weights {} ({} copied, {} mapped), computing {}, pool {}, warm adapters {}\n"
      "  requests  {} at a time, {} tokens each, keys and values in {}\n"
      "  pool      {} pages of {} tokens, {} each\n"
      "  adapters  {} of rank {} resident, {} each\n"
      "  threads   {}\n",
      human_size(plan.memory_bytes()), human_size(plan.weights.total()), human_size(plan.weights.copied),
      human_size(plan.weights.mapped), human_size(plan.compute_bytes), human_size(plan.pool_bytes()),
      human_size(plan.warm_bytes), plan.parallel, plan.context, to_string(plan.kv_type), plan.pages, plan.page_tokens,
      human_size(plan.page_bytes), plan.resident_adapters, plan.adapter_rank, human_size(plan.adapter_bytes),
      plan.threads);
}

// "8.0 billion".
std::string count_text(std::uint64_t count) {
  const auto number = static_cast<double>(count);
  return number < 1e9 ? std::format("{:.1f} million", number / 1e6) : std::format("{:.1f} billion", number / 1e9);
}

std::string model_text(const PlannedFile& model) {
  std::string out = std::format("\n{}: {}, {} parameters, {} ({:.1f} bits a weight)\n", model.file.filename().string(),
                                model.header.architecture, count_text(model.header.parameters),
                                model.header.quantization, sizing::bits_per_weight(model.header));
  if (!model.plan.fits()) return out + "  does not fit: " + model.plan.problem + "\n";
  if (!model.plan.useful_context) out += "  fits, but with a short context only\n";
  return out + figures_text(model.plan);
}

std::string text_of(const Plans& plans) {
  std::string out = device_text(plans);
  for (const PlannedFile& model : plans.models) out += model_text(model);
  if (plans.models.size() < 2) return out;
  const std::string name =
      plans.recommended ? plans.models[*plans.recommended].file.filename().string() : "none of them";
  return out + "\nrecommended: " + name + "\n";
}

}  // namespace

void add_engine_plan(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* command = app.add_subcommand("plan", "say how a model would be served on this device");
  command->footer(std::string(sizing::recommendation_rule));
  command->add_option("--model", options->models, "GGUF file; several to have one recommended; none: the device only")
      ->check(CLI::ExistingFile);
  add_wishes(*command, options->wishes);
  command->add_flag("--json", options->json, "print JSON");
  command->callback([options, &exit_code] {
    if (const auto plans = make_plans(*options)) {
      std::cout << (options->json ? json_of(*plans) + "\n" : text_of(*plans));
    } else {
      std::cerr << "molly-engine: " << plans.error().message << '\n';
      exit_code = 1;
    }
  });
}

}  // namespace molly::apps
