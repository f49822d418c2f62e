#include "engine/model/model.h"

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

BaseShape Model::base_shape() const {
  BaseShape shape;
  shape.architecture = config_.architecture;
  shape.layers = config_.n_layer;
  const auto set = [&](Projection projection, std::uint32_t n_in, std::uint32_t n_out) {
    shape.projections[static_cast<std::size_t>(projection)] = {n_in, n_out};
  };
  set(Projection::attn_q, config_.n_embd, config_.query_width());
  set(Projection::attn_k, config_.n_embd, config_.kv_width());
  set(Projection::attn_v, config_.n_embd, config_.kv_width());
  set(Projection::attn_output, config_.query_width(), config_.n_embd);
  set(Projection::ffn_gate, config_.n_embd, config_.n_ff);
  set(Projection::ffn_up, config_.n_embd, config_.n_ff);
  set(Projection::ffn_down, config_.n_ff, config_.n_embd);
  if (config_.rope_pairs == RopePairs::neighbours) {
    shape.permuted_heads = config_.n_head;
    shape.permuted_heads_kv = config_.n_head_kv;
  }
  return shape;
}

}  // namespace molly::engine
