#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/target.h"
#include "gguf/model_file.h"
#include "sizing/device.h"
#include "store/connection.h"
#include "store/migration.h"
#include "targets/settings.h"
#include "targets/supervisor.h"
#include "wire/openai.h"

// The model files that the owner added with `molly models add`: which they are, and how each is served.
namespace molly::targets {

struct ModelEntry {
  std::string name;
  std::filesystem::path file;
  std::filesystem::path projector;  // empty: none
  bool operator==(const ModelEntry&) const = default;
};

store::Schema model_schema();

Result<std::vector<ModelEntry>> list_models(store::Connection& connection);
// conflict when the name is taken.
Result<void> add_model(store::Connection& connection, const ModelEntry& model);
// not_found when there is none of that name.
Result<void> remove_model(store::Connection& connection, const std::string& name);

// "Qwen3-8B-Q4_K_M.gguf" as "qwen3-8b-q4_k_m": the name when none is given.
std::string default_model_name(const std::filesystem::path& file);

// molly-engine's program as `settings` names it; nothing when there is none.
std::optional<std::filesystem::path> find_engine(const ModelSettings& settings);

// How a model file is served and what it can do, from its own header, [models] and what this device has. One that does
// not fit is there all the same: its plan says what is missing.
struct ServedModel {
  ModelPlan plan;
  TargetDescription description;
  wire::ParameterSupport support;
};
// Blocks on the disk. Errors name the file.
Result<ServedModel> plan_model(const ModelEntry& model, const ModelSettings& settings, const sizing::Device& device);
// The same with the header already read.
Result<ServedModel> plan_model(const ModelEntry& model, const gguf::ModelFile& header, const ModelSettings& settings,
                               const sizing::Device& device);

}  // namespace molly::targets
