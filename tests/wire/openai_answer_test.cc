#include <gtest/gtest.h>

#include "fuzz/canonical.h"
#include "wire/openai.h"

namespace molly::wire {
namespace {

const AnswerIdentity identity{"ID", 1, "auto"};

TEST(WholeAnswer, becomes_events) {
  const auto events = parse_chat_answer(
      R"({"id":"x","object":"chat.completion","created":5.5,"model":"m","timings":{"a":1},
          "choices":[{"index":0,"message":{"role":"assistant","content":"hi","refusal":null},"finish_reason":"stop"}],
          "usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":9,
                   "completion_tokens_details":{"reasoning_tokens":1}}})");
  ASSERT_TRUE(events);
  ASSERT_EQ(events->size(), 4u);
  const auto& started = std::get<Started>((*events)[0]);
  EXPECT_EQ(started.created, 5);
  EXPECT_EQ(started.extra[0].first, "timings");
  const auto& choice = std::get<ChoiceDelta>((*events)[1]);
  EXPECT_EQ(choice.text, "hi");
  EXPECT_EQ(choice.finish, FinishReason::stop);
  const Usage& usage = std::get<UsageReport>((*events)[2]).usage;
  EXPECT_EQ(usage.completion_tokens, 2u);
  EXPECT_EQ(usage.reasoning_tokens, 1u);
  EXPECT_EQ(usage.extra.back().second.text, "9");
  EXPECT_TRUE(std::holds_alternative<Done>((*events)[3]));
}

TEST(WholeAnswer, that_is_none_is_an_upstream_failure) {
  for (const char* body :
       {"", "<html>", "null", "[]", "{}", R"({"choices":[]})", R"({"choices":null})", R"({"choices":{}})",
        R"({"choices":[{"index":0}]})", R"({"choices":[{"message":"hi"}]})",
        R"({"choices":[{"message":{"content":5}}]})", R"({"choices":[{"message":{"content":"hi"}}]} x)",
        R"({"choices":[{"index":-1,"message":{"content":"hi"}}]})",
        R"({"choices":[{"index":99999,"message":{"content":"hi"}}]})",
        R"({"choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":"many"}})",
        "{\"choices\":[{\"message\":{\"content\":\"\xFF\"}}]}"}) {
    const auto events = parse_chat_answer(body);
    ASSERT_FALSE(events) << body;
    EXPECT_EQ(events.error().code, ErrorCode::upstream_failed);
    EXPECT_EQ(events.error().field, "");
  }
}

TEST(WholeAnswer, with_an_error_member_is_that_error) {
  const auto events = parse_chat_answer(R"({"error":{"message":"slow down","code":429}})");
  ASSERT_FALSE(events);
  EXPECT_EQ(events.error().code, ErrorCode::rate_limited);
  EXPECT_EQ(events.error().message, "the target reported an error: slow down");
}

TEST(Chunks, that_are_none_are_upstream_failures) {
  for (const char* data : {"", "hello", "[DONE", "{}", "{\"type\":\"ping\"}", R"({"choices":[{"index":0}]})",
                           R"({"choices":[{"delta":{)"}) {
    ChunkParser parser(Endpoint::chat);
    const auto events = parser.parse(data);
    ASSERT_FALSE(events) << data;
    EXPECT_EQ(events.error().code, ErrorCode::upstream_failed);
  }
}

TEST(Chunks, start_once_and_end_once) {
  ChunkParser parser(Endpoint::chat);
  const std::string chunk = R"({"id":"a","choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]})";
  EXPECT_EQ(parser.parse(chunk)->size(), 2u);
  EXPECT_EQ(parser.parse(chunk)->size(), 1u);
  EXPECT_TRUE(parser.finished());
  EXPECT_FALSE(parser.ended());
  EXPECT_EQ(parser.parse("[DONE]")->size(), 1u);
  EXPECT_TRUE(parser.ended());
  EXPECT_EQ(parser.parse("garbage")->size(), 0u);
}

TEST(Chunks, are_finished_when_every_choice_asked_for_is) {
  ChunkParser parser(Endpoint::chat, 2);
  const std::string first = R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})";
  EXPECT_TRUE(parser.parse(first));
  EXPECT_TRUE(parser.parse(first));
  EXPECT_FALSE(parser.finished());
  EXPECT_TRUE(parser.parse(R"({"choices":[{"index":1,"delta":{},"finish_reason":"stop"}]})"));
  EXPECT_TRUE(parser.finished());
}

TEST(Chunks, carry_members_without_a_choice) {
  ChunkParser parser(Endpoint::chat);
  EXPECT_EQ(parser.parse(R"({"choices":[],"prompt_filter_results":[]})")->size(), 1u);
  const auto later = parser.parse(R"({"choices":[],"progress":1})");
  ASSERT_EQ(later->size(), 1u);
  EXPECT_EQ(std::get<ChoiceDelta>((*later)[0]).answer_extra[0].first, "progress");
}

TEST(Rendering, splits_a_whole_answer_into_the_chunks_of_a_stream) {
  ChunkRenderer renderer(Endpoint::chat, identity, UsageInStream::not_asked);
  ChoiceDelta delta;
  delta.text = "hi";
  delta.finish = FinishReason::stop;
  EXPECT_EQ(renderer.render(Started{}), "");
  EXPECT_EQ(
      renderer.render(delta),
      "data: "
      "{\"id\":\"ID\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"auto\",\"choices\":[{\"index\":0,"
      "\"delta\":{\"role\":\"assistant\",\"content\":\"hi\"},\"finish_reason\":null}]}\n\n"
      "data: "
      "{\"id\":\"ID\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"auto\",\"choices\":[{\"index\":0,"
      "\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n");
  EXPECT_EQ(renderer.render(Done{}), "data: [DONE]\n\n");
  EXPECT_EQ(renderer.render(Done{}), "");
}

TEST(Rendering, sends_nothing_after_a_failure) {
  ChunkRenderer renderer(Endpoint::chat, identity, UsageInStream::asked);
  EXPECT_TRUE(renderer.render(Failed{{ErrorCode::timeout, "late", ""}}).starts_with("data: {\"error\":"));
  EXPECT_EQ(renderer.render(Done{}), "");
}

TEST(Rendering, keeps_the_fragments_of_a_custom_tool_call_custom) {
  ChunkParser parser(Endpoint::chat);
  ChunkRenderer renderer(Endpoint::chat, identity, UsageInStream::not_asked);
  const auto events =
      parser.parse(R"({"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"custom":{"input":"x"}}]}}]})");
  EXPECT_TRUE(renderer.render(events->back()).contains(R"([{"index":0,"type":"custom","custom":{"input":"x"}}])"));
}

TEST(Builder, makes_a_message_of_a_custom_tool_call) {
  AnswerBuilder builder(Endpoint::chat);
  ChunkParser parser(Endpoint::chat);
  for (
      Event& event : *parser.parse(
          R"({"choices":[{"index":0,"delta":{"tool_calls":[{"id":"c","type":"custom","custom":{"name":"g","input":"x"}}]},"finish_reason":"tool_calls"}]})")) {
    builder.add(std::move(event));
  }
  EXPECT_TRUE(builder.render(identity).contains(R"({"id":"c","type":"custom","custom":{"name":"g","input":"x"}})"));
}

}  // namespace
}  // namespace molly::wire
