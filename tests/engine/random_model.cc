#include "random_model.h"

#include <gguf.h>

#include <array>
#include <cmath>
#include <memory>
#include <vector>

namespace molly::engine {
namespace {

// xorshift64 and a sum of four uniforms: normal enough, fast enough for hundreds of millions.
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ULL + 1) {}
  float next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    float sum = 0;
    for (int part = 0; part < 4; ++part) sum += static_cast<float>((state_ >> (16 * part)) & 0xffff) / 65536.0F - 0.5F;
    return sum * 1.7320508F;
  }

 private:
  std::uint64_t state_;
};

struct Matrix {
  std::string name;
  std::int64_t n_in = 0;
  std::int64_t n_out = 0;
  float deviation = 0;
};

std::array<Matrix, 7> projections(const RandomModel& model) {
  const std::int64_t query = model.n_head * model.head_dim;
  const std::int64_t kv = model.n_head_kv * model.head_dim;
  const auto deviation = [](std::int64_t n_in, float factor) { return factor / std::sqrt(static_cast<float>(n_in)); };
  constexpr float residual = 0.35F;  // what is added to the residual stream is smaller
  return {{{"attn_q", model.n_embd, query, deviation(model.n_embd, 1)},
           {"attn_k", model.n_embd, kv, deviation(model.n_embd, 1)},
           {"attn_v", model.n_embd, kv, deviation(model.n_embd, 1)},
           {"attn_output", query, model.n_embd, deviation(query, residual)},
           {"ffn_gate", model.n_embd, model.n_ff, deviation(model.n_embd, 1)},
           {"ffn_up", model.n_embd, model.n_ff, deviation(model.n_embd, 1)},
           {"ffn_down", model.n_ff, model.n_embd, deviation(model.n_ff, residual)}}};
}

class Writer {
 public:
  Writer() : gguf_(gguf_init_empty()) {}
  ~Writer() { gguf_free(gguf_); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  gguf_context* handle() { return gguf_; }

  void add(const Matrix& matrix, ggml_type type, std::uint64_t seed) {
    const auto count = static_cast<std::size_t>(matrix.n_in * matrix.n_out);
    std::vector<float> numbers(count);
    Noise noise(seed);
    for (float& number : numbers) number = noise.next() * matrix.deviation;
    ggml_tensor* tensor = make(type, matrix.n_in, matrix.n_out, matrix.name);
    if (type == GGML_TYPE_F32) {
      std::copy(numbers.begin(), numbers.end(), static_cast<float*>(tensor->data));
    } else {
      ggml_quantize_chunk(type, numbers.data(), tensor->data, 0, matrix.n_out, matrix.n_in, nullptr);
    }
    gguf_add_tensor(gguf_, tensor);
  }

  void add_vector(const std::string& name, std::int64_t length, float mean, std::uint64_t seed) {
    ggml_tensor* tensor = make(GGML_TYPE_F32, length, 1, name);
    Noise noise(seed);
    for (std::int64_t i = 0; i < length; ++i) static_cast<float*>(tensor->data)[i] = mean + 0.1F * noise.next();
    gguf_add_tensor(gguf_, tensor);
  }

  void write(const std::filesystem::path& file) { gguf_write_to_file(gguf_, file.c_str(), false); }

 private:
  struct Free {
    void operator()(ggml_context* context) const { ggml_free(context); }
  };

  ggml_tensor* make(ggml_type type, std::int64_t n_in, std::int64_t n_out, const std::string& name) {
    const std::size_t bytes = ggml_row_size(type, n_in) * static_cast<std::size_t>(n_out);
    contexts_.emplace_back(
        ggml_init({.mem_size = bytes + 2 * ggml_tensor_overhead(), .mem_buffer = nullptr, .no_alloc = false}));
    ggml_tensor* tensor = n_out == 1 ? ggml_new_tensor_1d(contexts_.back().get(), type, n_in)
                                     : ggml_new_tensor_2d(contexts_.back().get(), type, n_in, n_out);
    ggml_set_name(tensor, name.c_str());
    return tensor;
  }

  gguf_context* gguf_;
  std::vector<std::unique_ptr<ggml_context, Free>> contexts_;
};

void write_shape(gguf_context* gguf, const RandomModel& model) {
  const auto set = [&](const char* key, std::int64_t value) {
    gguf_set_val_u32(gguf, (model.architecture + "." + key).c_str(), static_cast<std::uint32_t>(value));
  };
  gguf_set_val_str(gguf, "general.architecture", model.architecture.c_str());
  gguf_set_val_str(gguf, "general.name", "random");
  set("context_length", model.n_context);
  set("embedding_length", model.n_embd);
  set("block_count", model.n_layer);
  set("feed_forward_length", model.n_ff);
  set("attention.head_count", model.n_head);
  set("attention.head_count_kv", model.n_head_kv);
  set("attention.key_length", model.head_dim);
  set("attention.value_length", model.head_dim);
  set("rope.dimension_count", model.head_dim);
  set("vocab_size", model.n_vocab);
  gguf_set_val_f32(gguf, (model.architecture + ".attention.layer_norm_rms_epsilon").c_str(), 1e-5F);
  gguf_set_val_f32(gguf, (model.architecture + ".rope.freq_base").c_str(), 10'000);
}

// A SentencePiece layout: three special tokens, 256 bytes, then made-up pieces.
void write_vocabulary(gguf_context* gguf, const RandomModel& model) {
  constexpr std::int32_t normal = 1;
  constexpr std::int32_t unknown = 2;
  constexpr std::int32_t control = 3;
  constexpr std::int32_t byte = 6;
  std::vector<std::string> pieces{"<unk>", "<s>", "</s>"};
  std::vector<std::int32_t> types{unknown, control, control};
  for (int value = 0; value < 256; ++value) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", value);
    pieces.emplace_back(text);
    types.push_back(byte);
  }
  while (static_cast<std::int64_t>(pieces.size()) < model.n_vocab) {
    pieces.push_back("\xe2\x96\x81piece" + std::to_string(pieces.size()));
    types.push_back(normal);
  }
  pieces[259] = "\xe2\x96\x81" + model.first_piece_name;
  std::vector<const char*> texts;
  std::vector<float> scores;
  for (const std::string& piece : pieces) {
    texts.push_back(piece.c_str());
    scores.push_back(-static_cast<float>(scores.size()));
  }
  gguf_set_val_str(gguf, "tokenizer.ggml.model", "llama");
  gguf_set_arr_str(gguf, "tokenizer.ggml.tokens", texts.data(), texts.size());
  gguf_set_arr_data(gguf, "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, scores.data(), scores.size());
  gguf_set_arr_data(gguf, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types.data(), types.size());
  gguf_set_val_u32(gguf, "tokenizer.ggml.unknown_token_id", 0);
  gguf_set_val_u32(gguf, "tokenizer.ggml.bos_token_id", 1);
  gguf_set_val_u32(gguf, "tokenizer.ggml.eos_token_id", 2);
  gguf_set_val_bool(gguf, "tokenizer.ggml.add_bos_token", true);
  gguf_set_val_bool(gguf, "tokenizer.ggml.add_eos_token", false);
}

void write_layer(Writer& writer, const RandomModel& model, std::int64_t layer) {
  const std::string prefix = "blk." + std::to_string(layer) + ".";
  std::uint64_t seed = model.seed * 1'000'003 + static_cast<std::uint64_t>(layer) * 64;
  writer.add_vector(prefix + "attn_norm.weight", model.n_embd, 1, ++seed);
  writer.add_vector(prefix + "ffn_norm.weight", model.n_embd, 1, ++seed);
  for (Matrix matrix : projections(model)) {
    const bool biased = model.architecture == "qwen2" &&
                        (matrix.name == "attn_q" || matrix.name == "attn_k" || matrix.name == "attn_v");
    if (biased) writer.add_vector(prefix + matrix.name + ".bias", matrix.n_out, 0, ++seed);
    const bool adds = matrix.name == "attn_output" || matrix.name == "ffn_down";
    if (adds && layer >= model.fine_from) matrix.deviation *= model.fine;
    matrix.name = prefix + matrix.name + ".weight";
    writer.add(matrix, model.type, ++seed);
  }
  if (model.architecture != "qwen3") return;
  writer.add_vector(prefix + "attn_q_norm.weight", model.head_dim, 1, ++seed);
  writer.add_vector(prefix + "attn_k_norm.weight", model.head_dim, 1, ++seed);
}

}  // namespace

void write_random_model(const std::filesystem::path& file, const RandomModel& model) {
  Writer writer;
  write_shape(writer.handle(), model);
  write_vocabulary(writer.handle(), model);
  const float spread = 2.0F / std::sqrt(static_cast<float>(model.n_embd));
  writer.add({"token_embd.weight", model.n_embd, model.n_vocab, model.tied ? spread : 0.5F}, model.type,
             model.seed + 1);
  writer.add_vector("output_norm.weight", model.n_embd, 1, model.seed + 2);
  if (!model.tied) writer.add({"output.weight", model.n_embd, model.n_vocab, spread}, model.type, model.seed + 3);
  for (std::int64_t layer = 0; layer < model.n_layer; ++layer) write_layer(writer, model, layer);
  writer.write(file);
}

void write_random_adapter(const std::filesystem::path& file, const RandomModel& base, const RandomAdapter& adapter) {
  Writer writer;
  gguf_context* gguf = writer.handle();
  gguf_set_val_str(gguf, "general.type", "adapter");
  gguf_set_val_str(gguf, "general.architecture", base.architecture.c_str());
  gguf_set_val_str(gguf, "general.name", "random");
  gguf_set_val_str(gguf, "adapter.type", "lora");
  gguf_set_val_f32(gguf, "adapter.lora.alpha", adapter.alpha);
  for (std::int64_t layer = 0; layer < base.n_layer; ++layer) {
    std::uint64_t seed = adapter.seed * 100'003 + static_cast<std::uint64_t>(layer) * 32;
    for (const Matrix& matrix : projections(base)) {
      const std::string name = "blk." + std::to_string(layer) + "." + matrix.name + ".weight";
      const float into = 1.0F / std::sqrt(static_cast<float>(matrix.n_in));
      const float out_of =
          adapter.strength * 0.35F * matrix.deviation / into / std::sqrt(static_cast<float>(adapter.rank));
      writer.add({name + ".lora_a", matrix.n_in, adapter.rank, into}, GGML_TYPE_F16, ++seed);
      writer.add({name + ".lora_b", adapter.rank, matrix.n_out, out_of}, GGML_TYPE_F16, ++seed);
    }
  }
  writer.write(file);
}

}  // namespace molly::engine
