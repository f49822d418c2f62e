#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "wire/openai.h"

namespace molly::wire {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Support, of_everything_leaves_nothing_out) {
  const auto request = parse_chat_request(
      R"({"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"u"}}]}],"n":2,"seed":1})");
  EXPECT_THAT(unsupported_parameters(*request, {}), IsEmpty());
}

TEST(Support, names_what_a_target_cannot_honour) {
  const auto request = parse_chat_request(
      R"({"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"u"}},
            {"type":"image_url","image_url":{"url":"v"}},{"type":"hologram"}]}],
          "tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"auto","n":2,"seed":1,"top_k":5,
          "logprobs":true,"response_format":{"type":"json_object"}})");
  const ParameterSupport text_only{.tools = false,
                                   .response_format = false,
                                   .logprobs = false,
                                   .multiple_choices = false,
                                   .seed = false,
                                   .extended_sampling = false,
                                   .image = false,
                                   .opaque_parts = false};
  EXPECT_THAT(unsupported_parameters(*request, text_only),
              ElementsAre("messages[].content[].image_url", "messages[].content[].hologram", "tools", "tool_choice",
                          "response_format", "top_k", "seed", "logprobs", "n"));
}

TEST(Support, does_not_mind_values_that_ask_for_nothing) {
  const auto request = parse_chat_request(
      R"({"messages":[{"role":"user","content":"x"}],"n":1,"logprobs":false,"response_format":{"type":"text"},"tools":[]})");
  const ParameterSupport little{.tools = false, .response_format = false, .logprobs = false, .multiple_choices = false};
  EXPECT_THAT(unsupported_parameters(*request, little), IsEmpty());
}

TEST(TokenBound, is_never_below_the_bytes_of_the_text) {
  const std::string text(100'000, 'x');
  const auto request = parse_chat_request(R"({"messages":[{"role":"user","content":")" + text + "\"}]}");
  EXPECT_GE(token_upper_bound(*request), text.size());
  EXPECT_LT(token_upper_bound(*request), text.size() + 2000);
}

TEST(TokenBound, counts_tools_as_templates_may_lay_them_out) {
  const std::string parameters = R"({"a":{"b":{"c":[1,2,3]}}})";
  const auto request = parse_chat_request(
      R"({"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f","parameters":)" +
      parameters + "}}]}");
  // Indented by four, this schema takes 105 bytes.
  EXPECT_GE(token_upper_bound(*request), 4096u + 105u);
}

TEST(TokenBound, of_a_text_completion_is_that_of_its_longest_prompt) {
  const auto request = parse_completion_request(R"({"prompt":["aaaaaaaaaa","b"]})");
  EXPECT_GE(token_upper_bound(*request), 10u);
  EXPECT_LT(token_upper_bound(*request), 100u);
}

}  // namespace
}  // namespace molly::wire
