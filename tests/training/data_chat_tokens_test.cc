#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "chat_fixture.h"
#include "training/data/chat_tokens.h"
#include "wire/openai.h"

namespace molly::training {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<Example> examples_of(const BaseText& base, std::string_view body) {
  const auto request = wire::parse_chat_request(body).value();
  auto examples = ChatTokens(*base.vocabulary, *base.chat_template).conversation(request);
  if (!examples) throw std::runtime_error(examples.error().message);
  return *std::move(examples);
}

std::string refusal_of(const BaseText& base, std::string_view body) {
  const auto request = wire::parse_chat_request(body).value();
  const auto examples = ChatTokens(*base.vocabulary, *base.chat_template).conversation(request);
  return examples ? "accepted" : examples.error().message;
}

std::string text_of(const BaseText& base, const Example& example) {
  std::string text;
  for (const auto token : example.tokens) text += base.vocabulary->piece(token, engine::SpecialTokens::parsed);
  return text;
}

// The text of each run of tokens that count.
std::vector<std::string> counted_texts(const BaseText& base, const Example& example) {
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < example.tokens.size(); ++i) {
    if (example.counts[i] == 0) continue;
    if (i == 0 || example.counts[i - 1] == 0) runs.emplace_back();
    runs.back() += base.vocabulary->piece(example.tokens[i], engine::SpecialTokens::parsed);
  }
  return runs;
}

constexpr std::string_view two_turns =
    R"({"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hello"},)"
    R"({"role":"assistant","content":"Hi."},{"role":"user","content":"2 + 2?"},)"
    R"({"role":"assistant","content":"4"}]})";

TEST(TrainingChatTokens, only_what_the_assistant_wrote_counts_up_to_its_end_of_turn_token) {
  const BaseText base = with_template("embedded");
  const auto examples = examples_of(base, two_turns);
  ASSERT_EQ(examples.size(), 1);
  EXPECT_THAT(counted_texts(base, examples[0]), ElementsAre(" Hi.<|end|>", " 4<|end|>"));
  EXPECT_EQ(text_of(base, examples[0]),
            "Be brief.\n\nUser: Hello\nAssistant: Hi.<|end|>\nUser: 2 + 2?\nAssistant: 4<|end|>\n");
}

TEST(TrainingChatTokens, the_prompt_of_each_turn_has_the_tokens_that_it_has_in_service) {
  const BaseText base = with_template("embedded");
  const auto whole = examples_of(base, two_turns).front();
  const auto request = wire::parse_chat_request(
      R"({"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hello"}]})");
  const auto prompt = ChatTokens(*base.vocabulary, *base.chat_template).prompt(*request).value();
  EXPECT_TRUE(prompt.is_prompt());
  ASSERT_LT(prompt.tokens.size(), whole.tokens.size());
  EXPECT_TRUE(std::equal(prompt.tokens.begin(), prompt.tokens.end(), whole.tokens.begin()));
  EXPECT_EQ(whole.counts[prompt.tokens.size() - 1], 0);
  EXPECT_EQ(whole.counts[prompt.tokens.size()], 1);
}

TEST(TrainingChatTokens, calls_of_tools_count_and_their_results_do_not) {
  const BaseText base = with_template("qwen_tools", "<|end|>");
  const auto examples =
      examples_of(base, R"({"messages":[{"role":"user","content":"Weather in Lima?"},)"
                        R"({"role":"assistant","content":"","tool_calls":[{"id":"a","type":"function",)"
                        R"("function":{"name":"weather","arguments":"{\"place\":\"Lima\"}"}}]},)"
                        R"({"role":"tool","tool_call_id":"a","content":"19 degrees"},)"
                        R"({"role":"assistant","content":"It has 19 degrees."}],)"
                        R"("tools":[{"type":"function","function":{"name":"weather","description":"Says the weather",)"
                        R"("parameters":{"type":"object","properties":{"place":{"type":"string"}}}}}]})");
  ASSERT_EQ(examples.size(), 1);
  const auto counted = counted_texts(base, examples[0]);
  ASSERT_EQ(counted.size(), 2);
  EXPECT_THAT(counted[0],
              testing::AllOf(HasSubstr(R"("name": "weather")"), HasSubstr("Lima"), testing::EndsWith("<|end|>")));
  EXPECT_EQ(counted[1], "It has 19 degrees.<|end|>");
  EXPECT_THAT(text_of(base, examples[0]), HasSubstr("19 degrees\n</tool_response>"));
}

TEST(TrainingChatTokens, a_template_that_rewrites_earlier_turns_gives_one_example_for_each_turn) {
  const BaseText base = with_template("qwen3_thinking", "<|end|>");
  const auto examples = examples_of(
      base, R"({"messages":[{"role":"user","content":"Hello"},)"
            R"({"role":"assistant","content":"Hi.","reasoning_content":"A greeting."},)"
            R"({"role":"user","content":"2 + 2?"},{"role":"assistant","content":"4","reasoning_content":"A sum."}]})");
  ASSERT_EQ(examples.size(), 2);
  EXPECT_THAT(counted_texts(base, examples[0]), ElementsAre("A greeting.\n</think>\n\nHi.<|end|>"));
  EXPECT_THAT(counted_texts(base, examples[1]), ElementsAre("A sum.\n</think>\n\n4<|end|>"));
  EXPECT_THAT(text_of(base, examples[1]), testing::Not(HasSubstr("A greeting.")));
}

TEST(TrainingChatTokens, a_template_that_does_not_continue_its_prompt_is_refused) {
  const BaseText base = with_source(
      "{% for m in messages %}[{{ m.role }}]{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}GO{% endif "
      "%}");
  EXPECT_THAT(refusal_of(base, two_turns), HasSubstr("does not continue its own generation prompt"));
}

TEST(TrainingChatTokens, a_template_without_end_of_turn_is_refused) {
  const BaseText base = with_source(
      "{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}[assistant]{% "
      "endif %}");
  EXPECT_THAT(refusal_of(base, two_turns), HasSubstr("writes no end-of-turn token"));
}

TEST(TrainingChatTokens, a_conversation_that_begins_with_the_assistant_is_refused) {
  const BaseText base = with_template("embedded");
  EXPECT_THAT(refusal_of(base, R"({"messages":[{"role":"assistant","content":"Hi."}]})"),
              HasSubstr("cannot begin with the assistant's turn"));
}

}  // namespace
}  // namespace molly::training
