#pragma once

#include <ggml.h>

#include <cstdint>
#include <filesystem>
#include <string>

// Model and adapter files with random weights, for tests and benchmarks: the shape is real, the text is noise.
namespace molly::engine {

struct RandomModel {
  std::string architecture = "llama";  // llama, qwen2 or qwen3
  std::int64_t n_embd = 128;
  std::int64_t n_layer = 2;
  std::int64_t n_head = 4;
  std::int64_t n_head_kv = 2;
  std::int64_t head_dim = 32;
  std::int64_t n_ff = 256;
  std::int64_t n_vocab = 1024;
  std::int64_t n_context = 4096;
  bool tied = false;
  ggml_type type = GGML_TYPE_F16;  // of matrices
  std::uint64_t seed = 1;
  // Layers from this one on add so much less to what the others made: a model of only the others is a good guesser.
  std::int64_t fine_from = 0;
  float fine = 1;
  std::string first_piece_name = "piece259";

  // About 0.35 B parameters, the model of the published measurements.
  static RandomModel of_350m() {
    return {
        .n_embd = 1024, .n_layer = 24, .n_head = 16, .n_head_kv = 8, .head_dim = 64, .n_ff = 2816, .n_vocab = 32000};
  }
};

void write_random_model(const std::filesystem::path& file, const RandomModel& model);

struct RandomAdapter {
  std::int64_t rank = 16;
  float alpha = 16;
  std::uint64_t seed = 1;
  float strength = 1;  // 1: changes the output about as much as the base itself varies
};

void write_random_adapter(const std::filesystem::path& file, const RandomModel& base, const RandomAdapter& adapter);

}  // namespace molly::engine
