#include "engine/model/model.h"

#include "engine/model/adapter_shape.h"

namespace molly::engine {

Result<std::unique_ptr<Model>> Model::load(const std::filesystem::path& path, const Backend& backend) {
  auto file = gguf::read_model_file(path);
  if (!file) return std::unexpected(file.error());
  std::unique_ptr<Model> out(new Model);
  out->file_ = std::move(*file);
  out->architecture_ = find_architecture(out->file_.architecture);
  if (out->architecture_ == nullptr) {
    return failure(ErrorCode::invalid_request,
                   "the engine does not run models of the architecture '" + out->file_.architecture + "'");
  }
  auto config = read_dense_config(out->file_);
  if (!config) return std::unexpected(config.error());
  out->config_ = std::move(*config);
  out->config_.rope_pairs = out->architecture_->rope_pairs;
  WeightMap map(backend, out->file_);
  out->weights_ = out->architecture_->map_weights(out->config_, map);
  auto loaded = LoadedWeights::load(path, map, backend);
  if (!loaded) return std::unexpected(loaded.error());
  out->loaded_ = std::move(*loaded);
  return out;
}

BaseShape Model::base_shape() const { return adapter_shape(config_); }

}  // namespace molly::engine
