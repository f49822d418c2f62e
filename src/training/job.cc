#include "training/job.h"

#include <algorithm>
#include <format>
#include <set>
#include <utility>

#include "base/json_writer.h"
#include "base/os/file.h"
#include "engine/adapters/lora_file.h"
#include "wire/json_reader.h"

namespace molly::training {
namespace {

using wire::JsonReader;

constexpr std::uint64_t max_job_bytes = 1ULL << 20;
constexpr std::uint64_t most_steps = 100'000'000;

constexpr std::pair<std::string_view, Method> method_names[] = {
    {"sft", Method::sft}, {"distill", Method::distill}, {"on_policy", Method::on_policy}, {"dpo", Method::dpo}};
constexpr std::pair<std::string_view, LongExamples> long_names[] = {
    {"refuse", LongExamples::refuse}, {"leave_out", LongExamples::leave_out}, {"truncate", LongExamples::truncate}};
constexpr std::pair<std::string_view, Divergence> divergence_names[] = {{"forward", Divergence::forward},
                                                                        {"reverse", Divergence::reverse}};

template <class Value, std::size_t N>
std::string_view name_in(const std::pair<std::string_view, Value> (&names)[N], Value value) {
  return std::ranges::find(names, value, &std::pair<std::string_view, Value>::second)->first;
}

template <class Value, std::size_t N>
void read_name(JsonReader& in, const std::pair<std::string_view, Value> (&names)[N], Value& into) {
  const std::string text = in.string();
  std::string all;
  for (const auto& [name, value] : names) {
    if (name == text) into = value;
    if (name == text) return;
    all += (all.empty() ? "'" : ", '") + std::string(name) + "'";
  }
  in.fail("must be one of " + all);
}

// Reads an object whose members read(key) knows, or not; each at most once.
template <class Read>
void read_object(JsonReader& in, Read&& read) {
  std::set<std::string, std::less<>> seen;
  in.object([&](std::string_view key) {
    if (!seen.emplace(key).second) return in.fail("is given twice");
    if (!read(key)) in.fail("is not a member of a job");
  });
}

// Both ends belong to it.
double real(JsonReader& in, double least, double most) {
  const double value = in.number().value;
  if (in.ok() && !(value >= least && value <= most)) in.fail(std::format("must be from {} to {}", least, most));
  return value;
}

// A share that is less than the whole.
double share(JsonReader& in) {
  const double value = in.number().value;
  if (in.ok() && !(value >= 0 && value < 1)) in.fail("must be at least 0 and below 1");
  return value;
}

double above_zero(JsonReader& in, double most) {
  const double value = in.number().value;
  if (in.ok() && !(value > 0 && value <= most)) in.fail(std::format("must be above 0 and at most {}", most));
  return value;
}

template <class Number>
void whole(JsonReader& in, Number& into, std::uint64_t least, std::uint64_t most) {
  const std::uint64_t value = in.unsigned_integer();
  if (in.ok() && (value < least || value > most)) return in.fail(std::format("must be from {} to {}", least, most));
  into = static_cast<Number>(value);
}

void read_path(JsonReader& in, std::filesystem::path& into) {
  const std::string text = in.string();
  if (!in.ok()) return;
  if (text.empty() || text.contains('\0')) return in.fail("must be a path");
  into = text;
}

class JobReader {
 public:
  explicit JobReader(std::string_view json) : in_(json) {}

  Result<Job> read() {
    read_object(in_, [this](std::string_view key) { return read_paths(key) || read_run(key) || read_parts(key); });
    in_.expect_end();
    if (!in_.ok()) {
      const std::string sentence = in_.path().empty() ? in_.problem() : in_.path() + " " + in_.problem();
      return failure(ErrorCode::invalid_request, sentence, in_.path());
    }
    if (job_.base.empty()) return missing("base");
    if (job_.data.empty()) return missing("data");
    if (job_.output.empty()) return missing("output");
    return check();
  }

 private:
  static std::unexpected<Error> missing(const std::string& name) {
    return failure(ErrorCode::invalid_request, name + " is required", name);
  }

  static std::unexpected<Error> refuse(const std::string& name, const std::string& what) {
    return failure(ErrorCode::invalid_request, name + " " + what, name);
  }

  Result<Job> check() {
    if (job_.optimizer.tokens_per_step < job_.row_tokens) {
      return refuse("optimizer.tokens_per_step", std::format("must be at least row_tokens, {}", job_.row_tokens));
    }
    if (job_.method == Method::on_policy && job_.scorer.empty()) {
      return refuse("scorer", "is required by the method on_policy: the teacher answers there");
    }
    if (job_.early_stopping && job_.held_out_share == 0) {
      return refuse("early_stopping", "needs held-out examples: held_out_share is 0");
    }
    return std::move(job_);
  }

  bool read_paths(std::string_view key) {
    if (key == "base") return read_path(in_, job_.base), true;
    if (key == "output") return read_path(in_, job_.output), true;
    if (key == "scorer") return read_path(in_, job_.scorer), true;
    if (key == "teacher_scores") return read_path(in_, job_.teacher_scores), true;
    if (key != "data") return false;
    in_.array([&](std::uint32_t) { read_path(in_, job_.data.emplace_back()); });
    return true;
  }

  bool read_run(std::string_view key) {
    if (key == "label") return job_.label = in_.string(), true;
    if (key == "held_out_share") return job_.held_out_share = share(in_), true;
    if (key == "long_examples") return read_name(in_, long_names, job_.long_examples), true;
    if (key == "method") return read_name(in_, method_names, job_.method), true;
    if (key == "row_tokens") return whole(in_, job_.row_tokens, 2, 1U << 20), true;
    if (key == "seed") return job_.seed = in_.unsigned_integer(), true;
    if (key == "threads") return whole(in_, job_.threads, 0, 4096), true;
    if (key == "checkpoint_every") return whole(in_, job_.checkpoint_every, 0, most_steps), true;
    return false;
  }

  bool read_parts(std::string_view key) {
    if (key == "lora") return read_object(in_, [this](auto name) { return read_lora(name); }), true;
    if (key == "optimizer") return read_optimizer(), true;
    if (key == "early_stopping") return read_early_stopping(), true;
    if (key == "replay") return read_replay(), true;
    if (key == "distill") return read_object(in_, [this](auto name) { return read_distill(name); }), true;
    if (key != "dpo") return false;
    read_object(in_, [this](auto name) { return name == "beta" && (job_.dpo_beta = above_zero(in_, 100), true); });
    return true;
  }

  bool read_lora(std::string_view key) {
    if (key == "rank") return whole(in_, job_.lora.rank, 1, 512), true;
    if (key == "alpha") return job_.lora.alpha = above_zero(in_, 1e6), true;
    if (key == "targets") return read_targets(), true;
    if (key != "dropout") return false;
    if (in_.number().value != 0) in_.fail("is not supported: only 0");
    return true;
  }

  void read_targets() {
    std::set<std::string> named;
    in_.array([&](std::uint32_t) {
      std::string name = in_.string();
      if (!in_.ok()) return;
      if (!std::ranges::contains(engine::projection_names, name)) {
        return in_.fail("must be one of attn_q, attn_k, attn_v, attn_output, ffn_gate, ffn_up, ffn_down");
      }
      if (!named.insert(std::move(name)).second) in_.fail("is named twice");
    });
    if (in_.ok() && named.empty()) return in_.fail("must name at least one projection");
    job_.lora.targets.clear();
    for (const auto name : engine::projection_names) {
      if (named.contains(std::string(name))) job_.lora.targets.emplace_back(name);
    }
  }

  void read_optimizer() {
    OptimizerSettings& to = job_.optimizer;
    bool has_steps = false;
    bool has_epochs = false;
    read_object(in_, [&](std::string_view key) {
      if (key == "steps") return whole(in_, to.steps, 1, most_steps), has_steps = true;
      if (key == "epochs") return to.epochs = above_zero(in_, 1e6), has_epochs = true;
      if (key == "tokens_per_step") return whole(in_, to.tokens_per_step, 2, 1U << 26), true;
      if (key == "rate") return to.rate = above_zero(in_, 1), true;
      if (key == "warm_up_share") return to.warm_up_share = share(in_), true;
      if (key == "end_share") return to.end_share = real(in_, 0, 1), true;
      if (key == "weight_decay") return to.weight_decay = real(in_, 0, 10), true;
      if (key == "clip_norm") return to.clip_norm = real(in_, 0, 1e6), true;
      if (key == "beta1") return to.beta1 = share(in_), true;
      if (key == "beta2") return to.beta2 = share(in_), true;
      return false;
    });
    if (in_.ok() && has_steps && has_epochs) in_.fail("says both steps and epochs");
  }

  void read_early_stopping() {
    EarlyStopping& to = job_.early_stopping.emplace();
    read_object(in_, [&](std::string_view key) {
      if (key == "patience") return whole(in_, to.patience, 1, 1'000'000), true;
      if (key == "every") return whole(in_, to.every, 1, most_steps), true;
      return false;
    });
  }

  void read_replay() {
    Replay& to = job_.replay.emplace();
    read_object(in_, [&](std::string_view key) {
      if (key == "file") return read_path(in_, to.file), true;
      if (key == "share") return to.share = share(in_), true;
      return false;
    });
    if (in_.ok() && to.file.empty()) in_.fail_member("file", "is required");
  }

  bool read_distill(std::string_view key) {
    DistillSettings& to = job_.distill;
    if (key == "temperature") return to.temperature = above_zero(in_, 100), true;
    if (key == "mix") return to.mix = real(in_, 0, 1), true;
    if (key == "top_k") return whole(in_, to.top_k, 1, max_teacher_top_k), true;
    if (key == "kl") return read_name(in_, divergence_names, to.divergence), true;
    if (key == "hints") return to.hints = in_.boolean(), true;
    return false;
  }

  JsonReader in_;
  Job job_;
};

void write_optimizer(base::JsonWriter& json, const OptimizerSettings& settings) {
  json.key("optimizer").begin_object();
  if (settings.steps > 0) {
    json.member("steps", settings.steps);
  } else {
    json.member("epochs", settings.epochs);
  }
  json.member("tokens_per_step", settings.tokens_per_step).member("rate", settings.rate);
  json.member("warm_up_share", settings.warm_up_share).member("end_share", settings.end_share);
  json.member("weight_decay", settings.weight_decay).member("clip_norm", settings.clip_norm);
  json.member("beta1", settings.beta1).member("beta2", settings.beta2).end_object();
}

void write_options(base::JsonWriter& json, const Job& job) {
  if (job.early_stopping) {
    json.key("early_stopping").begin_object().member("patience", job.early_stopping->patience);
    json.member("every", job.early_stopping->every).end_object();
  }
  if (job.replay) {
    json.key("replay").begin_object().member("file", job.replay->file.string());
    json.member("share", job.replay->share).end_object();
  }
  if (!job.scorer.empty()) json.member("scorer", job.scorer.string());
  if (!job.teacher_scores.empty()) json.member("teacher_scores", job.teacher_scores.string());
}

}  // namespace

std::string_view to_string(Method method) { return name_in(method_names, method); }

RowKind row_kind(Method method) {
  if (method == Method::dpo) return RowKind::preference;
  return method == Method::sft ? RowKind::conversation : RowKind::conversation_or_prompt;
}

Result<Job> parse_job(std::string_view json) { return JobReader(json).read(); }

Result<Job> read_job(const std::filesystem::path& file) {
  const auto text = base::read_file(file, max_job_bytes);
  if (!text) return std::unexpected(text.error());
  auto job = parse_job(*text);
  if (!job) job.error().message = file.string() + ": " + job.error().message;
  return job;
}

std::string job_json(const Job& job) {
  base::JsonWriter json;
  json.begin_object().member("base", job.base.string()).key("data").begin_array();
  for (const auto& file : job.data) json.value(file.string());
  json.end_array().member("output", job.output.string()).member("label", job.label);
  json.member("held_out_share", job.held_out_share).member("long_examples", name_in(long_names, job.long_examples));
  json.member("method", to_string(job.method)).member("row_tokens", job.row_tokens).member("seed", job.seed);
  json.member("threads", job.threads).member("checkpoint_every", job.checkpoint_every);
  json.key("lora").begin_object().member("rank", job.lora.rank).member("alpha", job.lora.alpha);
  json.key("targets").begin_array();
  for (const auto& name : job.lora.targets) json.value(name);
  json.end_array().end_object();
  write_optimizer(json, job.optimizer);
  json.key("distill").begin_object().member("temperature", job.distill.temperature);
  json.member("mix", job.distill.mix).member("top_k", job.distill.top_k);
  json.member("kl", name_in(divergence_names, job.distill.divergence)).member("hints", job.distill.hints).end_object();
  json.key("dpo").begin_object().member("beta", job.dpo_beta).end_object();
  write_options(json, job);
  return std::move(json.end_object()).text();
}

}  // namespace molly::training
