#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>
#include <set>

#include "../temporary_folder.h"
#include "chat_fixture.h"
#include "training/data/data_set.h"

namespace molly::training {
namespace {

using testing::HasSubstr;

const BaseText& base() {
  static const BaseText text = with_template("embedded");
  return text;
}

std::string row(std::string_view question, std::string_view answer, std::string_view more = "") {
  return std::format(R"({{"messages":[{{"role":"user","content":"{}"}},{{"role":"assistant","content":"{}"}}]{}}})"
                     "\n",
                     question, answer, more);
}

std::string rows(int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += row(std::format("What is {}?", i), std::format("A number, {}.", i));
  return out;
}

class TrainingDataSet : public testing::Test {
 protected:
  Result<DataSet> read(std::string_view text) {
    write_text(file, text);
    return read_data({file}, *base().vocabulary, *base().chat_template, options);
  }

  std::string refusal(std::string_view text) {
    const auto data = read(text);
    return data ? "accepted" : data.error().message;
  }

  TemporaryFolder folder;
  std::filesystem::path file = folder.path() / "data.jsonl";
  DataOptions options{.held_out_share = 0, .context_tokens = 200, .min_train = 1};
};

TEST_F(TrainingDataSet, about_the_share_is_held_out_and_always_the_same_keys) {
  options.held_out_share = 0.25;
  const auto data = read(rows(200)).value();
  EXPECT_EQ(data.train.size() + data.held_out.size(), 200);
  EXPECT_NEAR(static_cast<double>(data.held_out.size()), 50, 20);
  std::set<std::string> held_out;
  for (const Example& one : data.held_out.examples) held_out.insert(one.key);
  const auto more = read(rows(300)).value();
  for (const Example& one : more.train.examples) EXPECT_FALSE(held_out.contains(one.key));
}

TEST_F(TrainingDataSet, the_hash_of_a_key_is_fixed) {
  EXPECT_TRUE(is_held_out("abc", 0.73));  // SHA-256 of "abc" begins with ba7816bf: 0.7284
  EXPECT_FALSE(is_held_out("abc", 0.72));
  EXPECT_FALSE(is_held_out("abc", 0));
}

TEST_F(TrainingDataSet, rows_of_one_key_stay_together_and_may_say_where) {
  const auto data = read(row("a", "1", R"(,"key":"k","split":"held_out")") +
                         row("b", "2", R"(,"key":"k","split":"held_out")") + row("c", "3", R"(,"key":"other")"))
                        .value();
  ASSERT_EQ(data.held_out.size(), 2);
  EXPECT_EQ(data.held_out.examples[1].key, "k");
  EXPECT_EQ(data.held_out.examples[1].origin, (Origin{0, 2}));
  EXPECT_EQ(data.train.size(), 1);
  EXPECT_EQ(refusal(row("a", "1", R"(,"key":"k","split":"held_out")") + row("b", "2", R"(,"key":"k")")),
            file.string() + ":2: the key 'k' is on both sides of the split: " + file.string() + ":1 says otherwise");
}

TEST_F(TrainingDataSet, the_same_example_on_both_sides_is_an_error_that_names_both_lines) {
  EXPECT_THAT(refusal(row("a", "1", R"(,"key":"x","split":"train")") + "\n" +
                      row("a", "1", R"(,"key":"y","split":"held_out")")),
              testing::AllOf(HasSubstr("data.jsonl:3: the same example"), HasSubstr("data.jsonl:1;")));
}

TEST_F(TrainingDataSet, duplicates_within_a_part_are_counted) {
  const auto data = read(row("a", "1") + row("a", "1") + row("a", "2") + row("a", "1")).value();
  EXPECT_EQ(data.report.train_duplicates, 2);
  EXPECT_EQ(data.train.size(), 4);
}

TEST_F(TrainingDataSet, errors_name_file_line_and_member) {
  EXPECT_EQ(refusal(row("a", "1") + R"({"messages":[{"role":"user","content":5}]})"),
            file.string() + ":2: messages[0].content must be a string, a list of parts or null");
  EXPECT_EQ(refusal(R"({"mesages":[]})"), file.string() + ":1: mesages is not a member of a row");
  EXPECT_THAT(refusal("{\"messages\":"), HasSubstr("data.jsonl:1: "));
  EXPECT_THAT(refusal(row("a", "1", R"(,"split":"test")")), HasSubstr(":1: split must be 'train' or 'held_out'"));
  EXPECT_THAT(refusal(R"({"messages":[{"role":"user","content":"Hi"}]})"), HasSubstr("ends without an answer"));
  EXPECT_THAT(refusal(R"({"prompt_messages":[{"role":"user","content":"Hi"}]})"), HasSubstr("chosen is required"));
  EXPECT_EQ(refusal(""), file.string() + " is empty: it holds no rows");
  const auto missing = read_data({folder.path() / "none"}, *base().vocabulary, *base().chat_template, options);
  EXPECT_EQ(missing.error().code, ErrorCode::io_failed);
}

TEST_F(TrainingDataSet, too_few_examples_are_an_error_before_training) {
  options.min_train = 8;
  EXPECT_THAT(refusal(rows(7)), HasSubstr("holds 7 examples to train on, at least 8"));
  options.min_train = 1;
  options.held_out_share = 0.5;
  EXPECT_THAT(refusal(row("a", "1", R"(,"split":"train")")), HasSubstr("no example is held out"));
}

TEST_F(TrainingDataSet, rows_longer_than_the_context_are_an_error_unless_the_job_says_what_to_do) {
  options.context_tokens = 16;
  const std::string text = row("a", "1") + row("b", "long long long long long long long long long long long long");
  EXPECT_THAT(refusal(text), HasSubstr("data.jsonl:2: 1 of 2 rows are longer than the context of 16 tokens"));
  options.long_examples = LongExamples::leave_out;
  EXPECT_EQ(read(text)->train.size(), 1);
  EXPECT_EQ(read(text)->report.left_out, 1);
  options.long_examples = LongExamples::truncate;
  const auto cut = read(text).value();
  EXPECT_EQ(cut.report.truncated, 1);
  ASSERT_EQ(cut.train.size(), 2);
  EXPECT_EQ(cut.train.examples[1].tokens.size(), 16);
  EXPECT_EQ(cut.train.examples[1].counts.back(), 1);
}

TEST_F(TrainingDataSet, preferences_share_their_prompt_and_only_the_answer_counts) {
  options.rows = RowKind::preference;
  const auto data = read(R"({"prompt_messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Yes?"},)"
                         R"({"role":"user","content":"2 + 2"}],"chosen":{"role":"assistant","content":"4"},)"
                         R"("rejected":{"role":"assistant","content":"five"},"key":"sum"})");
  ASSERT_TRUE(data) << data.error().message;
  ASSERT_EQ(data->train.pairs.size(), 1);
  const Pair& pair = data->train.pairs[0];
  EXPECT_EQ(pair.rejected.key, "sum");
  const auto first = std::ranges::find(pair.chosen.counts, 1) - pair.chosen.counts.begin();
  EXPECT_EQ(first, std::ranges::find(pair.rejected.counts, 1) - pair.rejected.counts.begin());
  EXPECT_TRUE(std::equal(pair.chosen.tokens.begin(), pair.chosen.tokens.begin() + first, pair.rejected.tokens.begin()));
  EXPECT_NE(pair.chosen.tokens, pair.rejected.tokens);
  EXPECT_THAT(refusal(row("a", "1")), HasSubstr("a preference is needed"));
  EXPECT_THAT(refusal(R"({"prompt_messages":[{"role":"user","content":"Hi"}],"chosen":{"role":"user","content":"4"},)"
                      R"("rejected":{"role":"assistant","content":"5"}})"),
              HasSubstr("chosen.role must be 'assistant'"));
  EXPECT_THAT(
      refusal(R"({"prompt_messages":[{"role":"user","content":"Hi"}],"chosen":{"role":"assistant","content":7},)"
              R"("rejected":{"role":"assistant","content":"5"}})"),
      HasSubstr("chosen[0].content must be"));
}

TEST_F(TrainingDataSet, prompts_without_an_answer_serve_distillation) {
  options.rows = RowKind::conversation_or_prompt;
  const auto data = read(R"({"messages":[{"role":"user","content":"Hi"}]})"
                         "\n" +
                         row("a", "1"))
                        .value();
  ASSERT_EQ(data.train.size(), 2);
  EXPECT_TRUE(data.train.examples[0].is_prompt());
  EXPECT_EQ(base().vocabulary->detokenize(data.train.examples[0].tokens), "User: Hi\nAssistant:");
}

TEST_F(TrainingDataSet, teacher_scores_must_be_there_for_every_token_that_counts) {
  options.rows = RowKind::conversation_or_prompt;
  const auto counted = read(row("a", "yes"))->train.examples[0].counted();
  const auto with_scores = [&](std::size_t count) {
    TeacherScores scores{.top_k = 1};
    for (std::size_t i = 0; i < count; ++i) {
      scores.tokens.push_back(static_cast<std::int32_t>(i));
      scores.log_probabilities.push_back(-1);
      scores.rest.push_back(0.63212F);
    }
    return row("a", "yes", R"(,"teacher":)" + teacher_scores_json(scores));
  };
  const auto data = read(with_scores(counted)).value();
  ASSERT_TRUE(data.train.examples[0].teacher);
  EXPECT_EQ(data.train.examples[0].teacher->rows(), counted);
  EXPECT_THAT(refusal(with_scores(counted + 1)),
              HasSubstr(std::format(":1: teacher has {} rows of scores, but {} tokens count", counted + 1, counted)));
}

TEST_F(TrainingDataSet, teacher_scores_may_stand_in_a_side_file) {
  const auto counted = read(row("a", "yes"))->train.examples[0].counted();
  TeacherScores scores{.top_k = 1};
  for (std::size_t i = 0; i < counted; ++i) {
    scores.tokens.push_back(7);
    scores.log_probabilities.push_back(0);
    scores.rest.push_back(0);
  }
  options.teacher_scores = folder.path() / "scores.jsonl";
  const std::string line = teacher_scores_json(scores) + "\n";
  write_text(options.teacher_scores, "null\n" + line);
  const std::string text = row("b", "no") + row("a", "yes");
  const auto data = read(text);
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_FALSE(data->train.examples[0].teacher);
  EXPECT_EQ(data->train.examples[1].teacher, scores);
  write_text(options.teacher_scores, "null\n");
  EXPECT_THAT(refusal(text), HasSubstr("scores.jsonl:1: the file ends before the rows"));
  write_text(options.teacher_scores, "null\n" + line + line);
  EXPECT_THAT(refusal(text), HasSubstr("scores.jsonl:3: there are more lines than rows"));
  write_text(options.teacher_scores, "null\n{\"k\":0}\n");
  EXPECT_THAT(refusal(text), HasSubstr("scores.jsonl:2: k must be at least 1"));
}

TEST_F(TrainingDataSet, the_digest_changes_with_what_is_learnt_and_with_nothing_else) {
  const std::string digest = read(row("a", "1") + row("b", "2"))->digest;
  EXPECT_EQ(digest.size(), 64);
  EXPECT_EQ(read(row("a", "1") + "\n\n" + row("b", "2"))->digest, digest);
  EXPECT_NE(read(row("b", "2") + row("a", "1"))->digest, digest);
  EXPECT_NE(read(row("a", "1") + row("b", "3"))->digest, digest);
  EXPECT_NE(read(row("a", "1") + row("b", "2", R"(,"split":"held_out")"))->digest, digest);
}

}  // namespace
}  // namespace molly::training
