#include "training/graph/base_model.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "base/os/file_descriptor.h"
#include "engine/model/architecture.h"
#include "training/random.h"

namespace molly::training {
namespace {

using engine::Projection;

// What such models need that ggml cannot differentiate.
struct Obstacle {
  std::string_view architecture_part;  // of general.architecture
  std::string_view operation;
};
constexpr std::array obstacles{
    Obstacle{"moe", "MUL_MAT_ID, by which tokens choose among experts,"},
    Obstacle{"mixtral", "MUL_MAT_ID, by which tokens choose among experts,"},
    Obstacle{"gemma", "GEGLU, the gate of its feed-forward layers,"},
    Obstacle{"phi2", "GELU, the activation of its feed-forward layers,"},
    Obstacle{"gpt2", "GELU, the activation of its feed-forward layers,"},
    Obstacle{"mamba", "SSM_SCAN, its recurrence,"},
};

Result<void> check_trainable(const gguf::ModelFile& file) {
  std::string_view operation;
  if (file.number("expert_count").value_or(0) > 0) operation = obstacles.front().operation;
  for (const Obstacle& obstacle : obstacles) {
    if (file.architecture.contains(obstacle.architecture_part)) operation = obstacle.operation;
  }
  if (!operation.empty()) {
    return failure(ErrorCode::invalid_request, "a base of architecture '" + file.architecture +
                                                   "' cannot be trained: " + std::string(operation) +
                                                   " has no backward form in ggml");
  }
  if (engine::find_architecture(file.architecture) == nullptr) {
    return failure(ErrorCode::invalid_request,
                   "a base of architecture '" + file.architecture + "' cannot be trained: llama, qwen2 and qwen3 can");
  }
  return {};
}

// Tensors by name, with the first mistake kept.
class Finder {
 public:
  explicit Finder(ggml_context* context) {
    for (ggml_tensor* tensor = ggml_get_first_tensor(context); tensor != nullptr;
         tensor = ggml_get_next_tensor(context, tensor)) {
      by_name_.emplace(ggml_get_name(tensor), tensor);
    }
  }

  ggml_tensor* optional(const std::string& name, std::int64_t ne0, std::int64_t ne1 = 1) {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return nullptr;
    ggml_tensor* tensor = found->second;
    if (tensor->ne[0] != ne0 || tensor->ne[1] != ne1 || ggml_nelements(tensor) != ne0 * ne1) {
      note("tensor '" + name + "' has another shape than the model's metadata ask for");
    }
    return tensor;
  }

  ggml_tensor* required(const std::string& name, std::int64_t ne0, std::int64_t ne1 = 1) {
    ggml_tensor* tensor = optional(name, ne0, ne1);
    if (tensor == nullptr) note("tensor '" + name + "' is missing");
    return tensor;
  }

  Linear linear(const std::string& prefix, Projection which, std::int64_t n_in, std::int64_t n_out) {
    const std::string name = prefix + std::string(engine::to_string(which));
    return {.weight = required(name + ".weight", n_in, n_out), .bias = optional(name + ".bias", n_out)};
  }

  const std::string& mistake() const { return mistake_; }

 private:
  void note(std::string sentence) {
    if (mistake_.empty()) mistake_ = std::move(sentence);
  }
  std::map<std::string, ggml_tensor*, std::less<>> by_name_;
  std::string mistake_;
};

Layer find_layer(Finder& find, const engine::ModelConfig& config, std::uint32_t index) {
  const std::string prefix = "blk." + std::to_string(index) + ".";
  const std::int64_t width = config.n_embd;
  Layer out;
  out.attn_norm = find.required(prefix + "attn_norm.weight", width);
  out.ffn_norm = find.required(prefix + "ffn_norm.weight", width);
  out.q_norm = find.optional(prefix + "attn_q_norm.weight", config.head_dim);
  out.k_norm = find.optional(prefix + "attn_k_norm.weight", config.head_dim);
  out[Projection::attn_q] = find.linear(prefix, Projection::attn_q, width, config.query_width());
  out[Projection::attn_k] = find.linear(prefix, Projection::attn_k, width, config.kv_width());
  out[Projection::attn_v] = find.linear(prefix, Projection::attn_v, width, config.kv_width());
  out[Projection::attn_output] = find.linear(prefix, Projection::attn_output, config.query_width(), width);
  out[Projection::ffn_gate] = find.linear(prefix, Projection::ffn_gate, width, config.n_ff);
  out[Projection::ffn_up] = find.linear(prefix, Projection::ffn_up, width, config.n_ff);
  out[Projection::ffn_down] = find.linear(prefix, Projection::ffn_down, config.n_ff, width);
  return out;
}

}  // namespace

Result<std::unique_ptr<BaseModel>> BaseModel::open(const std::filesystem::path& path) {
  auto file = gguf::read_model_file(path);
  if (!file) return std::unexpected(file.error());
  if (const auto trainable = check_trainable(*file); !trainable) return std::unexpected(trainable.error());
  auto config = engine::read_dense_config(*file);
  if (!config) return std::unexpected(config.error());
  config->rope_pairs = engine::find_architecture(file->architecture)->rope_pairs;
  if (const auto loaded = engine::Backend::open({.threads = 1}); !loaded) return std::unexpected(loaded.error());
  std::unique_ptr<BaseModel> out(new BaseModel);
  out->file_ = *std::move(file);
  out->decoder_.config = *std::move(config);
  if (const auto mapped = out->map(path); !mapped) return std::unexpected(mapped.error());
  if (const auto found = out->find_tensors(); !found) return std::unexpected(found.error());
  return out;
}

BaseModel::~BaseModel() {
  buffer_.reset();
  if (memory_ != nullptr) ::munmap(memory_, file_.file_bytes);
}

Result<void> BaseModel::map(const std::filesystem::path& path) {
  const base::FileDescriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (descriptor.get() < 0) {
    return failure(ErrorCode::io_failed, "cannot open " + path.string() + ": " + std::strerror(errno));
  }
  void* memory = ::mmap(nullptr, file_.file_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, descriptor.get(), 0);
  if (memory == MAP_FAILED) {
    return failure(ErrorCode::overloaded, "cannot map " + path.string() + ": " + std::strerror(errno));
  }
  memory_ = memory;
  ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  buffer_.reset(ggml_backend_dev_buffer_from_host_ptr(device, memory, file_.file_bytes, file_.file_bytes));
  if (!buffer_) return failure(ErrorCode::overloaded, "ggml cannot use the mapped file " + path.string());
  ggml_backend_buffer_set_usage(buffer_.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
  context_ = engine::describe_tensors(file_.tensors.size() + 1);
  for (const gguf::Tensor& stored : file_.tensors) {
    std::array<std::int64_t, 4> sizes{};
    std::ranges::copy(stored.dimensions, sizes.begin());
    const auto type = static_cast<ggml_type>(stored.type);
    if (stored.type >= GGML_TYPE_COUNT || sizes[0] % ggml_blck_size(type) != 0) {
      return failure(ErrorCode::invalid_request, "tensor '" + stored.name + "' has a type that ggml does not know");
    }
    ggml_tensor* tensor = ggml_new_tensor(context_.get(), type, 4, sizes.data());
    ggml_set_name(tensor, stored.name.c_str());
    if (stored.bytes != ggml_nbytes(tensor) || file_.data_offset + stored.offset + stored.bytes > file_.file_bytes) {
      return failure(ErrorCode::invalid_request, "tensor '" + stored.name + "' does not lie within its file");
    }
    ggml_backend_tensor_alloc(buffer_.get(), tensor,
                              static_cast<std::byte*>(memory) + file_.data_offset + stored.offset);
  }
  return {};
}

Result<void> BaseModel::find_tensors() {
  const engine::ModelConfig& config = decoder_.config;
  Finder find(context_.get());
  decoder_.token_embd = find.required("token_embd.weight", config.n_embd, config.n_vocab);
  decoder_.output_norm = find.required("output_norm.weight", config.n_embd);
  decoder_.output = find.optional("output.weight", config.n_embd, config.n_vocab);
  if (decoder_.output == nullptr) decoder_.output = decoder_.token_embd;
  decoder_.rope_factors = find.optional("rope_freqs.weight", config.rope_dims / 2);
  for (std::uint32_t layer = 0; layer < config.n_layer; ++layer) {
    decoder_.layers.push_back(find_layer(find, config, layer));
  }
  if (find.mistake().empty()) return {};
  return failure(ErrorCode::invalid_request, find.mistake());
}

std::vector<TensorShape> lora_shapes(const Decoder& decoder, const FactorSettings& settings) {
  std::vector<TensorShape> out;
  for (std::size_t layer = 0; layer < decoder.layers.size(); ++layer) {
    for (const Projection target : settings.targets) {
      const ggml_tensor* weight = decoder.layers[layer][target].weight;
      const std::string name =
          "blk." + std::to_string(layer) + "." + std::string(engine::to_string(target)) + ".weight.";
      out.push_back({.name = name + "lora_a", .ne0 = weight->ne[0], .ne1 = settings.rank});
      out.push_back({.name = name + "lora_b", .ne0 = settings.rank, .ne1 = weight->ne[1]});
    }
  }
  return out;
}

Decoder with_lora(const Decoder& decoder, const FactorSettings& settings, const Arena& arena) {
  Decoder out = decoder;
  Random random(settings.seed);
  auto next = arena.tensors().begin();
  for (Layer& layer : out.layers) {
    for (const Projection target : settings.targets) {
      Linear& linear = layer[target];
      linear.a = *next++;
      linear.b = *next++;
      linear.scale = settings.alpha / static_cast<float>(settings.rank);
      const float deviation = 1 / std::sqrt(static_cast<float>(linear.a->ne[0]));
      for (float& number : numbers_of(linear.a)) number = deviation * random.normal();
      std::ranges::fill(numbers_of(linear.b), 0.0F);
      ggml_set_param(linear.a);
      ggml_set_param(linear.b);
    }
  }
  return out;
}

}  // namespace molly::training
