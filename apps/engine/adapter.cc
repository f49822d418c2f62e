#include "engine/adapter.h"

#include <algorithm>
#include <format>
#include <iostream>

#include "base/json_writer.h"
#include "training/adapter/adapter_files.h"
#include "training/adapter/manifest.h"
#include "training/digest.h"

namespace molly::apps {
namespace {

using training::LoraWeights;

struct AdapterOptions {
  std::filesystem::path base;
  std::filesystem::path from;
  std::filesystem::path to;
  std::string base_name;
  bool half = false;
  bool json = false;
};

struct Summary {
  LoraWeights weights;
  std::uint32_t rank = 0;  // the largest
  std::vector<std::string> targets;
  std::optional<training::Manifest> manifest;
};

Summary summary_of(LoraWeights weights) {
  Summary out{.weights = std::move(weights)};
  for (const auto& one : out.weights.factors) {
    out.rank = std::max(out.rank, one.rank);
    const std::string target(engine::to_string(one.projection));
    if (!std::ranges::contains(out.targets, target)) out.targets.push_back(target);
  }
  return out;
}

std::string json_of(const Summary& summary, const std::filesystem::path& file) {
  base::JsonWriter json;
  json.begin_object().member("file", file.string()).member("name", summary.weights.name);
  json.member("base_name", summary.weights.base_name).member("rank", summary.rank);
  json.member("alpha", summary.weights.alpha).member("factors", summary.weights.factors.size());
  json.key("targets").begin_array();
  for (const auto& target : summary.targets) json.value(target);
  json.end_array();
  if (summary.manifest) json.raw_member("manifest", manifest_json(*summary.manifest));
  return std::move(json.end_object()).text() + "\n";
}

std::string text_of(const Summary& summary, const std::filesystem::path& file) {
  std::string targets;
  for (const auto& target : summary.targets) targets += " " + target;
  std::string out = std::format("{}: rank {}, alpha {}, {} projections:{}\n", file.string(), summary.rank,
                                summary.weights.alpha, summary.weights.factors.size(), targets);
  if (!summary.manifest) return out + "no manifest: which base it was made for is not known\n";
  const training::Manifest& manifest = *summary.manifest;
  out += std::format("base {} {}, made by {}\n", manifest.base.name, manifest.base.quantization, manifest.trainer);
  if (!manifest.data_digest.empty()) {
    out += std::format("data {} {}\n", manifest.data_digest.substr(0, 12), manifest.data_label);
  }
  if (manifest.curves.held_out.empty()) return out;
  return out + std::format("held-out loss {:.4f} -> {:.4f}\n", manifest.curves.held_out.front().loss,
                           manifest.curves.held_out.back().loss);
}

Result<LoraWeights> read(const AdapterOptions& options) {
  const auto shape = training::read_base_shape(options.base);
  if (!shape) return std::unexpected(shape.error());
  return training::read_lora_weights(options.from, *shape);
}

bool has_manifest(const std::filesystem::path& adapter) {
  std::error_code ignored;
  return std::filesystem::exists(training::manifest_path(adapter), ignored);
}

// An adapter with a manifest must be for this base.
Result<Summary> read_checked(const AdapterOptions& options) {
  std::optional<training::Manifest> manifest;
  if (options.from.extension() == ".gguf" && has_manifest(options.from)) {
    auto found = training::read_manifest(options.from);
    if (!found) return std::unexpected(found.error());
    const auto identity = training::identify_base(options.base);
    if (!identity) return std::unexpected(identity.error());
    if (auto same = training::check_base(*found, *identity); !same) return std::unexpected(same.error());
    if (auto same = training::check_adapter(*found, options.from); !same) return std::unexpected(same.error());
    manifest = *std::move(found);
  }
  auto weights = read(options);
  if (!weights) return std::unexpected(weights.error());
  Summary out = summary_of(*std::move(weights));
  out.manifest = std::move(manifest);
  return out;
}

Result<training::Manifest> import_manifest(const AdapterOptions& options, const Summary& summary) {
  auto identity = training::identify_base(options.base);
  if (!identity) return std::unexpected(identity.error());
  auto digest = training::sha256_of_file(options.to);
  if (!digest) return std::unexpected(digest.error());
  return training::Manifest{.base = *std::move(identity),
                            .adapter_sha256 = *std::move(digest),
                            .rank = summary.rank,
                            .alpha = summary.weights.alpha,
                            .targets = summary.targets,
                            .trainer = "molly-engine " MOLLY_VERSION ", imported"};
}

Result<Summary> import_adapter(const AdapterOptions& options) {
  const auto shape = training::read_base_shape(options.base);
  if (!shape) return std::unexpected(shape.error());
  auto weights = training::read_lora_weights(options.from, *shape);
  if (!weights) return std::unexpected(weights.error());
  const auto precision = options.half ? training::FactorPrecision::f16 : training::FactorPrecision::f32;
  auto written = training::write_gguf_adapter(options.to, *weights, *shape, precision);
  if (!written) return std::unexpected(written.error());
  Summary summary = summary_of(*std::move(weights));
  auto manifest = import_manifest(options, summary);
  if (!manifest) return std::unexpected(manifest.error());
  if (auto noted = training::write_manifest(options.to, *manifest); !noted) return std::unexpected(noted.error());
  summary.manifest = *std::move(manifest);
  return summary;
}

Result<Summary> export_adapter(const AdapterOptions& options) {
  auto summary = read_checked(options);
  if (!summary) return summary;
  const auto shape = training::read_base_shape(options.base);
  if (!shape) return std::unexpected(shape.error());
  auto written = training::write_peft_adapter(options.to, summary->weights, *shape, options.base_name);
  if (!written) return std::unexpected(written.error());
  return summary;
}

using Action = Result<Summary> (*)(const AdapterOptions&);

void run(const AdapterOptions& options, Action action, int& exit_code) {
  const auto summary = action(options);
  if (!summary) {
    std::cerr << "molly-engine: " << summary.error().message << '\n';
    exit_code = 1;
    return;
  }
  const auto& file = options.to.empty() ? options.from : options.to;
  std::cout << (options.json ? json_of(*summary, file) : text_of(*summary, file));
}

CLI::App* add_action(CLI::App& app, const std::shared_ptr<AdapterOptions>& options, const std::string& name,
                     const std::string& what, Action action, int& exit_code) {
  CLI::App* command = app.add_subcommand(name, what);
  command->add_option("adapter", options->from, "GGUF file, .safetensors file or folder that PEFT wrote")
      ->required()
      ->check(CLI::ExistingPath);
  command->add_option("--base", options->base, "GGUF file of the base model")->required()->check(CLI::ExistingFile);
  command->add_flag("--json", options->json, "print JSON");
  command->callback([options, action, &exit_code] { run(*options, action, exit_code); });
  return command;
}

}  // namespace

void add_engine_adapter(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("adapter", "show LoRA adapters, and convert them from and to PEFT's form");
  command->require_subcommand(1);
  auto options = std::make_shared<AdapterOptions>();
  add_action(*command, options, "show", "say what an adapter is, and check that it fits the base", read_checked,
             exit_code);
  CLI::App* from_peft =
      add_action(*command, options, "import", "write an adapter as GGUF, with a manifest", import_adapter, exit_code);
  from_peft->add_option("--output", options->to, "GGUF file to write")->required();
  from_peft->add_flag("--f16", options->half, "store half precision");
  CLI::App* to_peft = add_action(*command, options, "export", "write an adapter as PEFT does: safetensors and a config",
                                 export_adapter, exit_code);
  to_peft->add_option("--output", options->to, "folder to write into")->required();
  to_peft->add_option("--base-name", options->base_name, "what PEFT is to load the base by, e.g. a repository");
}

}  // namespace molly::apps
