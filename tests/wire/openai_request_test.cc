#include <gtest/gtest.h>

#include "fuzz/canonical.h"
#include "wire/openai.h"

namespace molly::wire {
namespace {

Request chat(std::string_view body) {
  auto request = parse_chat_request(body);
  EXPECT_TRUE(request.has_value()) << (request ? "" : request.error().message) << "\n" << body;
  return request.value_or(Request{});
}

constexpr std::string_view hello = R"("messages":[{"role":"user","content":"hi"}])";

std::string with(std::string_view members) { return "{" + std::string(hello) + "," + std::string(members) + "}"; }

TEST(ChatRequest, reads_a_plain_question) {
  const Request request = chat(R"({"model":"m","messages":[{"role":"system","content":"Be kind."},
      {"role":"user","content":"hi"}],"temperature":0.70,"max_tokens":5,"stream":true,"stop":"x"})");
  EXPECT_EQ(request.model, "m");
  ASSERT_EQ(request.messages.size(), 2u);
  EXPECT_EQ(request.messages[0].role, Role::system);
  EXPECT_EQ(request.messages[1].content.text, "hi");
  EXPECT_EQ(request.sampling.temperature->spelling, "0.70");
  EXPECT_EQ(request.sampling.max_tokens, 5u);
  EXPECT_TRUE(request.sampling.max_tokens_is_legacy);
  EXPECT_TRUE(request.sampling.stop_is_string);
  EXPECT_TRUE(request.stream);
  EXPECT_TRUE(request.extra.empty());
}

TEST(ChatRequest, needs_no_model) { EXPECT_EQ(chat("{" + std::string(hello) + "}").model, ""); }

TEST(ChatRequest, tells_null_absent_text_and_parts_apart) {
  const Request request = chat(R"({"messages":[{"role":"assistant","content":null},{"role":"assistant"},
      {"role":"user","content":""},{"role":"user","content":[]}]})");
  EXPECT_EQ(request.messages[0].content.form, Content::Form::null);
  EXPECT_EQ(request.messages[1].content.form, Content::Form::absent);
  EXPECT_EQ(request.messages[2].content.form, Content::Form::text);
  EXPECT_EQ(request.messages[3].content.form, Content::Form::parts);
}

TEST(ChatRequest, reads_every_kind_of_part_whatever_the_order_of_members) {
  const Request request = chat(R"({"messages":[{"role":"user","content":[
      {"text":"a","type":"text","cache_control":{"type":"ephemeral"}},
      {"type":"image_url","image_url":{"url":"data:x","detail":"low","future":1}},
      {"type":"input_audio","input_audio":{"data":"QQ==","format":"wav"}},
      {"type":"file","file":{"file_data":"QQ==","filename":"a.pdf"}},
      {"type":"refusal","refusal":"no"},
      {"type":"hologram","rays":[1,2]}]}]})");
  const auto& parts = request.messages[0].content.parts;
  ASSERT_EQ(parts.size(), 6u);
  EXPECT_EQ(std::get<TextPart>(parts[0].value).text, "a");
  EXPECT_EQ(parts[0].extra[0].first, "cache_control");
  EXPECT_EQ(std::get<ImagePart>(parts[1].value).detail, "low");
  EXPECT_EQ(parts[1].inner_extra[0].first, "future");
  EXPECT_EQ(std::get<AudioPart>(parts[2].value).format, "wav");
  EXPECT_EQ(std::get<FilePart>(parts[3].value).filename, "a.pdf");
  EXPECT_EQ(std::get<RefusalPart>(parts[4].value).text, "no");
  EXPECT_EQ(std::get<OpaquePart>(parts[5].value).type, "hologram");
  EXPECT_EQ(std::get<OpaquePart>(parts[5].value).json.text, R"({"type":"hologram","rays":[1,2]})");
}

TEST(ChatRequest, reads_tools_and_calls) {
  const Request request = chat(R"({"messages":[
      {"role":"assistant","content":null,"tool_calls":[
        {"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}},
        {"id":"c2","type":"custom","custom":{"name":"g","input":"text"}}]},
      {"role":"tool","tool_call_id":"c1","content":"4"}],
      "tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"},"strict":true}},
               {"type":"custom","custom":{"name":"g"}}],
      "tool_choice":{"type":"function","function":{"name":"f"}},"parallel_tool_calls":false})");
  EXPECT_EQ(request.messages[0].tool_calls[0].arguments, "{}");
  EXPECT_EQ(request.messages[0].tool_calls[1].kind, "custom");
  EXPECT_EQ(request.messages[0].tool_calls[1].arguments, "text");
  EXPECT_EQ(request.messages[1].tool_call_id, "c1");
  EXPECT_EQ(request.tools[0].parameters.text, R"({"type":"object"})");
  EXPECT_EQ(request.tools[0].strict, true);
  EXPECT_EQ(request.tools[1].kind, "custom");
  EXPECT_EQ(request.tool_choice.mode, ToolChoice::Mode::named);
  EXPECT_EQ(request.tool_choice.name, "f");
  EXPECT_EQ(request.parallel_tool_calls, false);
}

TEST(ChatRequest, keeps_an_unknown_role_by_its_name) {
  const Request request = chat(R"({"messages":[{"role":"critic","content":"x"}]})");
  EXPECT_EQ(request.messages[0].role, Role::other);
  EXPECT_EQ(request.messages[0].role_name, "critic");
}

TEST(ChatRequest, understands_escaped_member_names) {
  EXPECT_EQ(chat(with(R"("mod\u0065l":"m")")).model, "m");
  EXPECT_FALSE(parse_chat_request(with(R"("model":"a","mod\u0065l":"b")")));
}

struct Refusal {
  const char* body;
  const char* field;
  const char* says;
};

TEST(ChatRequest, names_the_field_at_fault) {
  const std::vector<Refusal> refusals{
      {"", "", "must be an object"},
      {"[]", "", "must be an object"},
      {"{", "", "not valid JSON"},
      {"{}", "messages", "is required"},
      {R"({"messages":[]})", "messages", "at least one"},
      {R"({"messages":null})", "messages", "must be a list"},
      {R"({"messages":"hi"})", "messages", "must be a list"},
      {R"({"messages":["hi"]})", "messages[0]", "must be an object"},
      {R"({"messages":[{"content":"x"}]})", "messages[0].role", "is required"},
      {R"({"messages":[{"role":1}]})", "messages[0].role", "must be a string"},
      {R"({"messages":[{"role":""}]})", "messages[0].role", "must name a role"},
      {R"({"messages":[{"role":"user","content":5}]})", "messages[0].content", "must be a string, a list"},
      {R"({"messages":[{"role":"user"},{"role":"user","content":["x"]}]})", "messages[1].content[0]",
       "must be an object"},
      {R"({"messages":[{"role":"user","content":[{"text":"x"}]}]})", "messages[0].content[0].type", "is required"},
      {R"({"messages":[{"role":"user","content":[{"type":7}]}]})", "messages[0].content[0].type", "must be a string"},
      {R"({"messages":[{"role":"user","content":[{"type":"text"}]}]})", "messages[0].content[0].text", "is required"},
      {R"({"messages":[{"role":"user","content":[{"type":"image_url","image_url":"x"}]}]})",
       "messages[0].content[0].image_url", "must be an object"},
      {R"({"messages":[{"role":"user","content":[{"type":"file","file":{}}]}]})", "messages[0].content[0].file",
       "file_id"},
      {R"({"messages":[{"role":"assistant","tool_calls":[{"type":"function"}]}]})",
       "messages[0].tool_calls[0].function", "is required"},
      {R"({"messages":[{"role":"user","content":"a","content":"b"}]})", "messages[0].content", "given twice"},
      {R"({"messages":[{"role":"user","x":1,"x":2}]})", "messages[0].x", "given twice"},
  };
  for (const Refusal& refusal : refusals) {
    const auto request = parse_chat_request(refusal.body);
    ASSERT_FALSE(request) << refusal.body;
    EXPECT_EQ(request.error().code, ErrorCode::invalid_request);
    EXPECT_EQ(request.error().field, refusal.field) << refusal.body;
    EXPECT_TRUE(request.error().message.contains(refusal.says)) << request.error().message;
  }
}

TEST(ChatRequest, refuses_wrong_types_of_parameters) {
  for (const auto& [member, field] : std::vector<std::pair<const char*, const char*>>{
           {R"("model":1)", "model"},
           {R"("stream":"yes")", "stream"},
           {R"("temperature":"hot")", "temperature"},
           {R"("n":0)", "n"},
           {R"("n":129)", "n"},
           {R"("n":1.5)", "n"},
           {R"("n":-1)", "n"},
           {R"("max_tokens":-2)", "max_tokens"},
           {R"("max_tokens":1e3)", "max_tokens"},
           {R"("max_tokens":1,"max_completion_tokens":1)", "max_completion_tokens"},
           {R"("stop":5)", "stop"},
           {R"("stop":["a",1])", "stop[1]"},
           {R"("seed":1.5)", "seed"},
           {R"("logit_bias":[])", "logit_bias"},
           {R"("logprobs":3)", "logprobs"},
           {R"("top_logprobs":true)", "top_logprobs"},
           {R"("response_format":"json")", "response_format"},
           {R"("response_format":{})", "response_format.type"},
           {R"("stream_options":{"include_usage":1})", "stream_options.include_usage"},
           {R"("tools":{"a":1})", "tools"},
           {R"("tools":[{"type":"function"}])", "tools[0].function"},
           {R"("tools":[{"type":"function","function":{"name":""}}])", "tools[0].function.name"},
           {R"("tools":[{"type":"function","function":{"name":"f","parameters":[]}}])", "tools[0].function.parameters"},
           {R"("tool_choice":1)", "tool_choice"},
           {R"("metadata":"x")", "metadata"},
           {R"("temperature":1e999)", "temperature"},
       }) {
    const auto request = parse_chat_request(with(member));
    ASSERT_FALSE(request) << member;
    EXPECT_EQ(request.error().field, field) << request.error().message;
  }
}

TEST(ChatRequest, keeps_null_and_empty_values_out_of_the_typed_form) {
  const Request request =
      chat(with(R"("temperature":null,"tools":[],"stop":[],"stream":false,"model":"","max_tokens":-1)"));
  EXPECT_FALSE(request.sampling.temperature);
  EXPECT_FALSE(request.sampling.max_tokens);
  EXPECT_TRUE(request.tools.empty());
  EXPECT_EQ(request.extra.size(), 6u);
}

TEST(CompletionRequest, reads_every_form_of_prompt) {
  EXPECT_EQ(parse_completion_request(R"({"prompt":"a"})")->prompts, std::vector<std::string>{"a"});
  EXPECT_EQ(parse_completion_request(R"({"prompt":["a","b"]})")->prompts, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(parse_completion_request(R"({"prompt":[1,2]})")->token_prompt.text, "[1,2]");
  EXPECT_EQ(parse_completion_request(R"({"prompt":[[1],[2,3]]})")->token_prompt.text, "[[1],[2,3]]");
  for (const char* body : {R"({})", R"({"prompt":[]})", R"({"prompt":null})", R"({"prompt":["a",1]})",
                           R"({"prompt":[1,"a"]})", R"({"prompt":[-1]})", R"({"prompt":{"a":1}})"}) {
    const auto request = parse_completion_request(body);
    ASSERT_FALSE(request) << body;
    EXPECT_TRUE(request.error().field.starts_with("prompt")) << request.error().message;
  }
}

TEST(CompletionRequest, has_a_number_of_logprobs) {
  const auto request = parse_completion_request(R"({"prompt":"a","logprobs":3,"echo":true,"suffix":"z","best_of":2})");
  EXPECT_EQ(request->sampling.top_logprobs, 3u);
  EXPECT_EQ(request->echo, true);
  EXPECT_EQ(request->suffix, "z");
  EXPECT_EQ(request->best_of, 2u);
}

TEST(EncodeRequest, replaces_the_model_and_asks_for_usage) {
  const Request request = chat(with(R"("model":"","stream":true,"stream_options":null)"));
  EXPECT_EQ(canonical(encode_request(request, {.model = "real", .include_usage = true})),
            canonical(with(R"("model":"real","stream":true,"stream_options":{"include_usage":true})")));
}

TEST(EncodeRequest, asks_for_usage_only_in_streams) {
  const Request request = chat(with(R"("model":"m")"));
  EXPECT_EQ(canonical(encode_request(request, {.include_usage = true})), canonical(with(R"("model":"m")")));
}

TEST(EncodeRequest, spells_the_token_limit_as_asked) {
  using Limit = EncodeOptions::TokenLimit;
  const Request request = chat(with(R"("max_tokens":7)"));
  EXPECT_EQ(canonical(encode_request(request, {.token_limit = Limit::max_completion_tokens})),
            canonical(with(R"("max_completion_tokens":7)")));
  EXPECT_EQ(canonical(encode_request(request, {.token_limit = Limit::max_tokens})),
            canonical(with(R"("max_tokens":7)")));
}

TEST(EncodeRequest, puts_reasoning_parts_of_other_dialects_beside_the_content) {
  Request request = chat("{" + std::string(hello) + "}");
  Message& message = request.messages[0];
  message.role = Role::assistant;
  message.content = {Content::Form::parts, {}, {{ReasoningPart{"hm", "sig"}, {}, {}}, {TextPart{"yes"}, {}, {}}}};
  EXPECT_EQ(
      canonical(encode_request(request)),
      canonical(
          R"({"messages":[{"role":"assistant","reasoning_content":"hm","content":[{"type":"text","text":"yes"}]}]})"));
}

}  // namespace
}  // namespace molly::wire
