#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "training/job.h"
#include "training/job_event.h"

namespace molly::training {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string with(std::string_view more) {
  return R"({"base":"b.gguf","data":["d.jsonl"],"output":"o")" + std::string(more) + "}";
}

std::string refusal_of(std::string_view json) {
  const auto job = parse_job(json);
  return job ? "accepted" : job.error().message;
}

TEST(TrainingJob, three_paths_are_enough) {
  const auto job = parse_job(with(""));
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->method, Method::sft);
  EXPECT_EQ(job->lora.targets.size(), 7);
  EXPECT_EQ(job->optimizer.steps, 0);
  EXPECT_FALSE(job->early_stopping);
}

TEST(TrainingJob, every_member_is_read_and_written_alike) {
  const auto job = parse_job(with(
      R"(,"label":"sql","held_out_share":0.2,"long_examples":"truncate","method":"distill","row_tokens":512,"seed":7,)"
      R"("threads":2,"checkpoint_every":10,"lora":{"rank":8,"alpha":16,"targets":["ffn_down","attn_q"],"dropout":0},)"
      R"("optimizer":{"steps":90,"tokens_per_step":1024,"rate":0.003,"warm_up_share":0.1,"end_share":0,)"
      R"("weight_decay":0,"clip_norm":0.5,"beta1":0.8,"beta2":0.99},"early_stopping":{"patience":2,"every":20},)"
      R"("replay":{"file":"r.jsonl","share":0.25},"distill":{"temperature":2,"mix":1,"top_k":8,"kl":"reverse",)"
      R"("hints":true},"dpo":{"beta":0.3},"scorer":"/run/scorer","teacher_scores":"t.jsonl")"));
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_THAT(job->lora.targets, ElementsAre("attn_q", "ffn_down"));
  EXPECT_EQ(job->distill.divergence, Divergence::reverse);
  EXPECT_EQ(job->replay->file, "r.jsonl");
  EXPECT_EQ(job->early_stopping->every, 20);
  const std::string written = job_json(*job);
  for (const char* part : {R"("beta2":0.99)", R"("share":0.25)", R"("steps":90)", R"("seed":7)", R"("hints":true)"}) {
    EXPECT_THAT(written, HasSubstr(part));
  }
  EXPECT_EQ(job_json(parse_job(written).value()), written);
}

TEST(TrainingJob, errors_name_the_member) {
  EXPECT_EQ(refusal_of(R"({"data":["d"],"output":"o"})"), "base is required");
  EXPECT_EQ(refusal_of(R"({"base":"b","data":[],"output":"o"})"), "data is required");
  EXPECT_EQ(refusal_of(with(R"(,"lora":{"rnak":8})")), "lora.rnak is not a member of a job");
  EXPECT_EQ(refusal_of(with(R"(,"lora":{"rank":0})")), "lora.rank must be from 1 to 512");
  EXPECT_EQ(refusal_of(with(R"(,"lora":{"dropout":0.1})")), "lora.dropout is not supported: only 0");
  EXPECT_THAT(refusal_of(with(R"(,"lora":{"targets":["q_proj"]})")),
              HasSubstr("lora.targets[0] must be one of attn_q"));
  EXPECT_EQ(refusal_of(with(R"(,"seed":1,"seed":2)")), "seed is given twice");
  EXPECT_EQ(refusal_of(with(R"(,"method":"rl")")), "method must be one of 'sft', 'distill', 'on_policy', 'dpo'");
  EXPECT_EQ(refusal_of(with(R"(,"method":"on_policy")")),
            "scorer is required by the method on_policy: the teacher answers there");
  EXPECT_EQ(refusal_of(with(R"(,"optimizer":{"steps":1,"epochs":1})")), "optimizer says both steps and epochs");
  EXPECT_EQ(refusal_of(with(R"(,"optimizer":{"tokens_per_step":100})")),
            "optimizer.tokens_per_step must be at least row_tokens, 1024");
  EXPECT_EQ(refusal_of(with(R"(,"replay":{"share":0.1})")), "replay.file is required");
  EXPECT_EQ(refusal_of(with(R"(,"held_out_share":0,"early_stopping":{})")),
            "early_stopping needs held-out examples: held_out_share is 0");
}

TEST(TrainingJobEvent, every_kind_is_written_and_read_alike) {
  const JobEvent events[] = {JobStarted{.steps = 9, .first_step = 4, .memory_bytes = 1 << 20, .train_examples = 80},
                             JobStep{4, 9, 1.25, 0.001, 812.5, 3},
                             JobHeldOut{4, 2.5},
                             JobCheckpoint{4, "o/checkpoint"},
                             JobWarning{"3 duplicates \"here\"\n"},
                             JobFinished{"o/adapter.gguf", "o/adapter.manifest.json", {{"held_out_loss", 1.5}}},
                             JobFailed{"io_failed", "the disk is full"}};
  for (const JobEvent& event : events) {
    const std::string line = job_event_json(event);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    const auto read = parse_job_event(line);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(**read, event) << line;
  }
}

TEST(TrainingJobEvent, what_later_versions_add_is_passed_over_and_what_is_wrong_is_named) {
  EXPECT_EQ(parse_job_event(R"({"event":"thought","deep":[1]})").value(), std::nullopt);
  EXPECT_EQ(**parse_job_event(R"({"new":{},"step":3,"loss":1,"event":"held_out"})"), JobEvent(JobHeldOut{3, 1}));
  const auto nan = parse_job_event(R"({"event":"held_out","step":3,"loss":null})").value();
  EXPECT_TRUE(std::isnan(std::get<JobHeldOut>(*nan).loss));
  EXPECT_THAT(parse_job_event(R"({"event":"held_out","step":3})").error().message, HasSubstr("loss is required"));
  EXPECT_THAT(parse_job_event(R"({"event":"step","step":-1})").error().message, HasSubstr("step "));
  EXPECT_THAT(parse_job_event("step 3").error().message, HasSubstr("the line is no event"));
}

}  // namespace
}  // namespace molly::training
