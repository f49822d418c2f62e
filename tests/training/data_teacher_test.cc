#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "training/data/teacher.h"

namespace molly::training {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal_of(std::string_view json) {
  const auto scores = parse_teacher_scores(json, 300);
  return scores ? "accepted" : scores.error().message;
}

TEST(TrainingTeacher, scores_are_read_and_written_alike) {
  const auto scores = parse_teacher_scores(
      R"({"k":2,"tokens":[[17,4],[9,250]],"logprobs":[[-0.1,-2.5],[-0.7,-0.8]],"rest":[0.0131,0.054]})", 300);
  ASSERT_TRUE(scores) << scores.error().message;
  EXPECT_EQ(scores->rows(), 2);
  EXPECT_THAT(scores->tokens, ElementsAre(17, 4, 9, 250));
  EXPECT_FLOAT_EQ(scores->log_probabilities[3], -0.8F);
  EXPECT_EQ(parse_teacher_scores(teacher_scores_json(*scores), 300).value(), *scores);
}

TEST(TrainingTeacher, the_rest_is_what_is_left_of_one_where_it_is_not_said) {
  const auto scores = parse_teacher_scores(R"({"k":1,"tokens":[[3],[4]],"logprobs":[[-0.6931472],[0]]})", 300);
  ASSERT_TRUE(scores) << scores.error().message;
  EXPECT_NEAR(scores->rest[0], 0.5, 1e-6);
  EXPECT_EQ(scores->rest[1], 0);
}

TEST(TrainingTeacher, what_is_no_distribution_is_refused_by_name) {
  EXPECT_EQ(refusal_of(R"({"tokens":[[1]],"k":1,"logprobs":[[-1]]})"), "tokens must come after k");
  EXPECT_EQ(refusal_of(R"({"k":0,"tokens":[],"logprobs":[]})"), "k must be at least 1");
  EXPECT_EQ(refusal_of(R"({"k":2,"tokens":[[1,2],[3]],"logprobs":[[-1,-2],[-1,-2]]})"),
            "tokens[1] has 1 elements, k is 2");
  EXPECT_THAT(refusal_of(R"({"k":1,"tokens":[[300]],"logprobs":[[-1]]})"), HasSubstr("tokens[0][0]"));
  EXPECT_EQ(refusal_of(R"({"k":1,"tokens":[[1]],"logprobs":[[0.1]]})"),
            "logprobs[0][0] must be at most 0: it is the logarithm of a probability");
  EXPECT_EQ(refusal_of(R"({"k":2,"tokens":[[1,1]],"logprobs":[[-1,-2]]})"), "teacher row 0: a token is there twice");
  EXPECT_EQ(refusal_of(R"({"k":2,"tokens":[[1,2]],"logprobs":[[-0.1,-0.1]]})"),
            "teacher row 0: the probabilities sum to 1.8097");
  EXPECT_EQ(refusal_of(R"({"k":1,"tokens":[[1]],"logprobs":[[-0.1]],"rest":[0.5]})"),
            "teacher row 0: the probabilities and the rest sum to 1.4048");
  EXPECT_EQ(refusal_of(R"({"k":1,"tokens":[[1]],"logprobs":[[-3]],"rest":[0.5]})"),
            "teacher row 0: the probabilities and the rest sum to 0.5498");
  EXPECT_EQ(refusal_of(R"({"k":1,"tokens":[[1],[2]],"logprobs":[[-1]]})"),
            "teacher has 2 rows of tokens and 1 of logprobs");
  EXPECT_EQ(refusal_of(R"({"k":1,"tokens":[[1]],"logprobs":[[-1]],"rest":[]})"),
            "teacher has 1 rows of tokens and 0 numbers in rest");
  EXPECT_EQ(refusal_of(R"({"k":1,"probs":[]})"), "probs is not a member of teacher scores");
}

}  // namespace
}  // namespace molly::training
