#include <algorithm>
#include <array>
#include <cstring>
#include <format>
#include <map>
#include <set>

#include "base/json_writer.h"
#include "base/os/file.h"
#include "engine/adapters/factor_pairs.h"
#include "training/adapter/adapter_files.h"
#include "training/adapter/rotary_rows.h"

namespace molly::training {
namespace {

using engine::Projection;

// In the order of Projection.
constexpr std::array<std::string_view, engine::projection_count> modules{
    "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
    "mlp.gate_proj",    "mlp.up_proj",      "mlp.down_proj"};

std::string_view module_of(Projection projection) { return modules[static_cast<std::size_t>(projection)]; }

std::string full_module(const LoraFactor& factor) {
  return std::format("model.layers.{}.{}", factor.layer, module_of(factor.projection));
}

std::uint32_t permuted_heads(const engine::BaseShape& base, Projection projection) {
  if (projection == Projection::attn_q) return base.permuted_heads;
  return projection == Projection::attn_k ? base.permuted_heads_kv : 0;
}

class SafeTensorsWriter {
 public:
  SafeTensorsWriter() { header_.begin_object().key("__metadata__").begin_object().member("format", "pt").end_object(); }

  void add(const std::string& name, std::uint32_t rows, std::uint32_t columns, const std::vector<float>& numbers) {
    const std::size_t first = data_.size();
    data_.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float));
    header_.key(name).begin_object().member("dtype", "F32").key("shape").begin_array().value(rows).value(columns);
    header_.end_array().key("data_offsets").begin_array().value(first).value(data_.size()).end_array().end_object();
  }

  std::string text() {
    std::string header = std::move(header_.end_object()).text();
    header.resize((header.size() + 7) / 8 * 8, ' ');
    const std::uint64_t length = header.size();
    std::string out(reinterpret_cast<const char*>(&length), sizeof length);
    return out + header + data_;
  }

 private:
  base::JsonWriter header_;
  std::string data_;
};

std::string safetensors_text(const LoraWeights& weights, const engine::BaseShape& base) {
  SafeTensorsWriter file;
  for (const LoraFactor& one : weights.factors) {
    const std::string name = "base_model.model." + full_module(one);
    const std::uint32_t heads = permuted_heads(base, one.projection);
    file.add(name + ".lora_A.weight", one.rank, one.n_in, one.a);
    file.add(name + ".lora_B.weight", one.n_out, one.rank, heads > 0 ? in_halves(one.b, one.rank, heads) : one.b);
  }
  return file.text();
}

// Short names where a projection is changed in every layer, else whole ones: a name stands for every module that ends
// with it.
std::set<std::string> target_modules(const LoraWeights& weights, const engine::BaseShape& base) {
  std::map<Projection, std::uint32_t> layers;
  for (const LoraFactor& one : weights.factors) ++layers[one.projection];
  const bool everywhere = std::ranges::all_of(layers, [&](const auto& one) { return one.second == base.layers; });
  std::set<std::string> names;
  for (const LoraFactor& one : weights.factors) {
    const std::string_view module = module_of(one.projection);
    names.insert(everywhere ? std::string(module.substr(module.find('.') + 1)) : full_module(one));
  }
  return names;
}

std::string config_text(const LoraWeights& weights, const engine::BaseShape& base, const std::string& base_name) {
  const std::uint32_t rank = weights.factors.front().rank;
  base::JsonWriter json;
  json.begin_object().member("peft_type", "LORA").member("task_type", "CAUSAL_LM");
  json.member("base_model_name_or_path", base_name).member("r", rank).member("lora_alpha", double{weights.alpha});
  json.member("lora_dropout", 0.0).member("bias", "none").member("fan_in_fan_out", false);
  json.member("inference_mode", true).key("modules_to_save").null();
  json.key("target_modules").begin_array();
  for (const std::string& name : target_modules(weights, base)) json.value(name);
  json.end_array().key("rank_pattern").begin_object();
  for (const LoraFactor& one : weights.factors) {
    if (one.rank != rank) json.member(full_module(one), one.rank);
  }
  return std::move(json.end_object().member("use_rslora", false).member("use_dora", false).end_object()).text();
}

}  // namespace

Result<void> write_peft_adapter(const std::filesystem::path& folder, const LoraWeights& weights,
                                const engine::BaseShape& base, std::string base_name) {
  if (auto good = check_weights(weights, base, FactorPrecision::f32); !good) return good;
  if (base_name.empty()) base_name = weights.base_name;
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) {
    return failure(ErrorCode::io_failed, "cannot make the folder " + folder.string() + ": " + failed.message());
  }
  auto written = base::write_file_atomically(folder / "adapter_model.safetensors", safetensors_text(weights, base));
  if (!written) return written;
  return base::write_file_atomically(folder / "adapter_config.json", config_text(weights, base, base_name));
}

}  // namespace molly::training
