#pragma once

#include <ggml-backend.h>
#include <llama.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "engine/memory/prefix_tree.h"

// libllama's own logits, as the measure of ours.
namespace molly::engine {

struct LlamaSettings {
  bool flash_attention = true;
  bool token_by_token = false;  // else the whole text in one batch
};

class LlamaReference {
 public:
  explicit LlamaReference(const std::filesystem::path& model) {
    llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
    llama_backend_init();
    use_only_the_processor();
    llama_model_params params = llama_model_default_params();
    params.n_gpu_layers = 0;
    model_ = llama_model_load_from_file(model.c_str(), params);
    if (model_ == nullptr) throw std::runtime_error("libllama cannot load the model");
  }
  ~LlamaReference() { llama_model_free(model_); }
  LlamaReference(const LlamaReference&) = delete;
  LlamaReference& operator=(const LlamaReference&) = delete;

  // Logits at every position: tokens.size() rows of the vocabulary.
  std::vector<float> logits(std::span<const Token> tokens, const std::filesystem::path& adapter = {},
                            const LlamaSettings& settings = {}) const {
    llama_context_params params = llama_context_default_params();
    params.n_ctx = static_cast<std::uint32_t>(tokens.size() + 8);
    params.n_batch = params.n_ctx;
    params.n_ubatch = params.n_ctx;
    params.n_threads = 1;
    params.n_threads_batch = 1;
    params.flash_attn_type = settings.flash_attention ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    llama_context* context = llama_init_from_model(model_, params);
    llama_adapter_lora* lora = nullptr;
    if (!adapter.empty()) {
      lora = llama_adapter_lora_init(model_, adapter.c_str());
      float scale = 1;
      llama_set_adapters_lora(context, &lora, 1, &scale);
    }
    std::vector<float> out = decode(context, tokens, settings.token_by_token ? 1 : tokens.size());
    llama_free(context);
    if (lora != nullptr) llama_adapter_lora_free(lora);
    return out;
  }

 private:
  // libllama would multiply longer texts by BLAS in single precision; what we are measured by is ggml's own products,
  // which round activations as ours do.
  static void use_only_the_processor() {
    if (ggml_backend_reg_t blas = ggml_backend_reg_by_name("BLAS")) ggml_backend_unload(blas);
  }

  std::vector<float> decode(llama_context* context, std::span<const Token> tokens, std::size_t step) const {
    const auto width = static_cast<std::size_t>(llama_vocab_n_tokens(llama_model_get_vocab(model_)));
    std::vector<float> out;
    llama_batch batch = llama_batch_init(static_cast<std::int32_t>(tokens.size()), 0, 1);
    for (std::size_t begin = 0; begin < tokens.size(); begin += step) {
      batch.n_tokens = static_cast<std::int32_t>(std::min(step, tokens.size() - begin));
      for (std::int32_t i = 0; i < batch.n_tokens; ++i) {
        batch.token[i] = tokens[begin + static_cast<std::size_t>(i)];
        batch.pos[i] = static_cast<llama_pos>(begin) + i;
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = 0;
        batch.logits[i] = 1;
      }
      if (llama_decode(context, batch) != 0) throw std::runtime_error("libllama cannot decode");
      for (std::int32_t i = 0; i < batch.n_tokens; ++i) {
        const float* row = llama_get_logits_ith(context, i);
        out.insert(out.end(), row, row + width);
      }
    }
    llama_batch_free(batch);
    return out;
  }

  llama_model* model_;
};

// Normalised mean squared error of `got` against `expected`.
inline double nmse(std::span<const float> got, std::span<const float> expected) {
  double error = 0;
  double power = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = static_cast<double>(got[i]) - static_cast<double>(expected[i]);
    error += difference * difference;
    power += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
  }
  return error / power;
}

}  // namespace molly::engine
