#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "training/data/data_set.h"

// What a trainer is asked to do: the job file of docs/training-jobs.md, which says what every member means.
namespace molly::training {

enum class Method : std::uint8_t { sft, distill, on_policy, dpo };
enum class Divergence : std::uint8_t { forward, reverse };

struct LoraSettings {
  std::uint32_t rank = 16;
  double alpha = 32;
  // In llama.cpp's names, in the order of engine::projection_names.
  std::vector<std::string> targets{"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"};
};

struct OptimizerSettings {
  std::uint64_t steps = 0;  // 0: as many as `epochs` takes
  double epochs = 3;
  std::uint32_t tokens_per_step = 4096;
  double rate = 1e-3;
  double warm_up_share = 0.05;  // of the steps
  double end_share = 0.1;       // of the rate, at the end of the cosine
  double weight_decay = 0.01;
  double clip_norm = 1;  // 0: no clipping
  double beta1 = 0.9;
  double beta2 = 0.999;
};

struct EarlyStopping {
  std::uint32_t patience = 3;  // held-out losses in a row that are no new best
  std::uint64_t every = 50;    // steps between two held-out losses
};

struct Replay {
  std::filesystem::path file;  // rows as in the data files
  double share = 0.1;          // of the tokens of a step
};

struct DistillSettings {
  double temperature = 1;
  double mix = 0.5;  // weight of the teacher's loss; the hard labels have the rest
  std::uint32_t top_k = 32;
  Divergence divergence = Divergence::forward;
  bool hints = false;  // hidden states too: teacher and student share the base
};

struct Job {
  std::filesystem::path base;
  std::vector<std::filesystem::path> data;
  std::filesystem::path output;  // folder
  std::string label;             // of the data, for the manifest; empty: none
  double held_out_share = 0.1;
  LongExamples long_examples = LongExamples::refuse;
  Method method = Method::sft;
  LoraSettings lora;
  OptimizerSettings optimizer;
  std::uint32_t row_tokens = 1024;
  std::uint64_t seed = 1;
  std::uint32_t threads = 0;             // 0: every core that the process may use
  std::uint64_t checkpoint_every = 100;  // steps; 0: never
  std::optional<EarlyStopping> early_stopping;
  std::optional<Replay> replay;
  DistillSettings distill;
  double dpo_beta = 0.1;
  std::filesystem::path scorer;          // unix socket; empty: none
  std::filesystem::path teacher_scores;  // side file; empty: scores stand in the rows
};

// invalid_request names the member: "lora.rank must be from 1 to 512". Members that a job does not have are errors.
// Relative paths are taken as they stand. Pure.
Result<Job> parse_job(std::string_view json);
// Blocks on the disk; errors begin with the file's path.
Result<Job> read_job(const std::filesystem::path& file);
// Every member, defaults too: parse_job() gives the same job.
std::string job_json(const Job& job);

RowKind row_kind(Method method);
std::string_view to_string(Method method);

}  // namespace molly::training
