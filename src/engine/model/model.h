#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "core/error.h"
#include "engine/adapters/lora_file.h"
#include "engine/model/architecture.h"
#include "engine/model/backend.h"
#include "engine/model/config.h"
#include "engine/model/weights.h"
#include "gguf/model_file.h"

namespace molly::engine {

// A model file that was loaded for computing. Immutable.
class Model {
 public:
  // invalid_request: the file is no model, its architecture is none of ours or its shape is not supported; io_failed;
  // overloaded: no memory. Blocks. `backend` must outlive the model.
  static Result<std::unique_ptr<Model>> load(const std::filesystem::path& path, const Backend& backend);

  const ModelConfig& config() const { return config_; }
  const Weights& weights() const { return weights_; }
  const Architecture& architecture() const { return *architecture_; }
  const gguf::ModelFile& file() const { return file_; }
  // What adapters must look like.
  BaseShape base_shape() const;
  std::uint64_t mapped_bytes() const { return loaded_->mapped_bytes(); }
  std::uint64_t copied_bytes() const { return loaded_->copied_bytes(); }

 private:
  Model() = default;
  gguf::ModelFile file_;
  const Architecture* architecture_ = nullptr;
  ModelConfig config_;
  Weights weights_;
  std::unique_ptr<LoadedWeights> loaded_;
};

}  // namespace molly::engine
