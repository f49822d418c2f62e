#include "wire/token_count.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "wire/openai.h"

namespace molly::wire {
namespace {

using testing::SizeIs;

TEST(TokenCount, asks_for_a_chat_as_it_would_be_sent) {
  const auto request = parse_chat_request(R"({"model":"m","messages":[{"role":"user","content":"hi"}]})");
  ASSERT_TRUE(request.has_value());
  const auto queries = count_queries(*request);
  ASSERT_THAT(queries, SizeIs(1));
  EXPECT_EQ(queries[0].path, "/v1/chat/completions/input_tokens");
  EXPECT_EQ(queries[0].body, encode_request(*request));
}

TEST(TokenCount, asks_once_for_each_prompt) {
  const auto request = parse_completion_request(R"({"prompt":["one","t\"wo"]})");
  ASSERT_TRUE(request.has_value());
  const auto queries = count_queries(*request);
  ASSERT_THAT(queries, SizeIs(2));
  EXPECT_EQ(queries[1].path, "/tokenize");
  EXPECT_EQ(queries[1].body, R"({"content":"t\"wo","add_special":true,"parse_special":true})");
}

TEST(TokenCount, asks_nothing_for_prompts_in_tokens) {
  const auto request = parse_completion_request(R"({"prompt":[1,2,3]})");
  ASSERT_TRUE(request.has_value());
  EXPECT_THAT(count_queries(*request), SizeIs(0));
}

TEST(TokenCount, reads_both_kinds_of_answers) {
  EXPECT_EQ(parse_token_count(R"({"object":"response.input_tokens","input_tokens":7})").value(), 7U);
  EXPECT_EQ(parse_token_count(R"({"tokens":[72,854,1087]})").value(), 3U);
  EXPECT_EQ(parse_token_count(R"({"tokens":[]})").value(), 0U);
}

TEST(TokenCount, refuses_anything_else) {
  for (const char* body : {"", "7", "{}", R"({"input_tokens":"7"})", R"({"tokens":7})", R"({"input_tokens":7)",
                           R"({"input_tokens":-1})", R"({"error":{"message":"no"}})"}) {
    const auto count = parse_token_count(body);
    ASSERT_FALSE(count.has_value()) << body;
    EXPECT_EQ(count.error().code, ErrorCode::upstream_failed) << body;
  }
}

}  // namespace
}  // namespace molly::wire
