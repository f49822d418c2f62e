#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>

#include "engine/text/answer/answer_grammar.h"
#include "engine/text/answer/answer_parser.h"
#include "engine/text/json_value.h"
#include "random_writer.h"

// Whatever a model that knows nothing writes under the grammar of an answer is read as what was asked for.
namespace molly::engine {
namespace {

constexpr std::uint32_t rounds = 20;
constexpr gguf::ToolCallForm forms[] = {gguf::ToolCallForm::hermes, gguf::ToolCallForm::llama3,
                                        gguf::ToolCallForm::mistral_list, gguf::ToolCallForm::mistral_args};

std::vector<CallableTool> tools() {
  return {{.name = "weather",
           .parameters = R"({"type": "object", "properties": {"place": {"enum": ["Paris", "Rome"]},
                             "days": {"type": "integer", "minimum": 1, "maximum": 9}}, "required": ["place"]})",
           .strict = true,
           .field = "tools[0]"},
          {.name = "root", .parameters = "", .field = "tools[1]"},
          {.name = "any_thing", .parameters = R"({"not": {}})", .field = "tools[2]"}};
}

std::shared_ptr<const AnswerForm> form_of(gguf::ToolCallForm form) {
  return std::make_shared<AnswerForm>(
      AnswerForm{.calls = call_format(form), .tools = {"weather", "root", "any_thing"}});
}

std::vector<AnswerPart> parsed(const std::shared_ptr<const AnswerForm>& form, std::string_view text) {
  AnswerParser parser(form);
  std::vector<AnswerPart> parts = parser.append(text);
  for (AnswerPart& part : parser.finish()) parts.push_back(std::move(part));
  return parts;
}

bool are_allowed(const std::string& tool, const JsonValue& arguments) {
  if (!arguments.is(wire::JsonReader::Kind::object)) return false;
  if (tool == "root") return arguments.members.empty();
  if (tool != "weather") return true;
  const JsonValue* place = arguments.find("place");
  return place != nullptr && (place->text == "Paris" || place->text == "Rome");
}

// How many calls there are; every part must be one.
std::size_t expect_calls(const std::vector<AnswerPart>& parts) {
  std::size_t calls = 0;
  for (std::size_t at = 0; at + 1 < parts.size(); at += 2, ++calls) {
    EXPECT_EQ(parts[at].kind, AnswerPart::Kind::call) << parts[at].text;
    EXPECT_EQ(parts[at + 1].kind, AnswerPart::Kind::arguments);
    const auto arguments = parse_json(parts[at + 1].text);
    const bool is_json = arguments || arguments.error().message == "is given twice";
    EXPECT_TRUE(is_json) << parts[at + 1].text;
    if (arguments) {
      EXPECT_TRUE(are_allowed(parts[at].text, *arguments)) << parts[at + 1].text;
    }
  }
  EXPECT_EQ(parts.size(), 2 * calls);
  return calls;
}

TEST(TextAnswerGrammar, a_required_call_is_certain) {
  for (const auto kind : forms) {
    const auto form = form_of(kind);
    const auto grammar = answer_grammar(*form, {.callable = tools()});
    ASSERT_TRUE(grammar) << grammar.error().message;
    for (std::uint32_t seed = 0; seed < rounds; ++seed) {
      const std::string text = written({.grammar = *grammar}, seed);
      SCOPED_TRACE(text);
      ASSERT_GE(expect_calls(parsed(form, text)), 1U) << *grammar;
    }
  }
}

TEST(TextAnswerGrammar, one_call_where_one_is_asked_for) {
  for (const auto kind : forms) {
    const auto form = form_of(kind);
    const auto grammar = answer_grammar(*form, {.callable = {tools()[1]}, .several_calls = false});
    for (std::uint32_t seed = 0; seed < rounds; ++seed) {
      const auto parts = parsed(form, written({.grammar = *grammar}, seed));
      ASSERT_EQ(expect_calls(parts), 1U);
      EXPECT_EQ(parts[0].text, "root");
    }
  }
}

TEST(TextAnswerGrammar, a_call_that_has_begun_is_made_whole_and_the_rest_is_free) {
  constexpr std::string_view beginnings[] = {"Well. <tool_call>", "<|python_tag|>", "Well. [TOOL_CALLS]",
                                             "Well. [TOOL_CALLS]"};
  for (std::size_t at = 0; at < std::size(forms); ++at) {
    const auto form = form_of(forms[at]);
    const auto grammar = calls_grammar(*form, {.callable = tools()});
    ASSERT_TRUE(grammar);
    for (std::uint32_t seed = 0; seed < rounds; ++seed) {
      const std::string text = written({.grammar = *grammar, .calls = form}, seed, beginnings[at]);
      SCOPED_TRACE(text);
      ASSERT_TRUE(text.starts_with(beginnings[at]));
      auto parts = parsed(form, text);
      if (parts[0].kind == AnswerPart::Kind::content) parts.erase(parts.begin());
      ASSERT_GE(expect_calls(parts), 1U);
    }
  }
}

TEST(TextAnswerGrammar, a_call_may_begin_without_a_mark_where_the_format_has_it_so) {
  const auto form = form_of(gguf::ToolCallForm::llama3);
  const auto grammar = calls_grammar(*form, {.callable = tools()});
  for (std::uint32_t seed = 0; seed < rounds; ++seed) {
    const std::string text = written({.grammar = *grammar, .calls = form}, seed, R"( {"name": "weather")");
    SCOPED_TRACE(text);
    ASSERT_EQ(expect_calls(parsed(form, text)), 1U);
    const std::string other = R"({"name": "Marie")";
    EXPECT_TRUE(written({.grammar = *grammar, .calls = form}, seed, other).starts_with(other));
  }
}

TEST(TextAnswerGrammar, text_without_a_call_is_free) {
  const auto form = form_of(gguf::ToolCallForm::hermes);
  const auto grammar = calls_grammar(*form, {.callable = tools()});
  for (std::uint32_t seed = 0; seed < rounds; ++seed) {
    EXPECT_EQ(written({.grammar = *grammar, .calls = form}, seed, "Hello there"), written({}, seed, "Hello there"));
  }
}

TEST(TextAnswerGrammar, reasoning_comes_first_where_the_prompt_leaves_room_for_it) {
  AnswerForm form{.calls = &hermes_calls(),
                  .tools = {"root"},
                  .reasoning = ReasoningTags{"<think>", "</think>"},
                  .reasoning_start = ReasoningStart::opened};
  const AnswerRules rules{.callable = {tools()[1]}};
  const std::string thought = "<</think>\n\n";
  const auto opened = answer_grammar(form, rules);
  ASSERT_TRUE(opened);
  auto parts = parsed(std::make_shared<AnswerForm>(form), written({.grammar = *opened}, 1, thought));
  ASSERT_EQ(parts[0].kind, AnswerPart::Kind::reasoning);
  EXPECT_EQ(parts[0].text, "<");
  parts.erase(parts.begin());
  EXPECT_GE(expect_calls(parts), 1U);
  form.reasoning_start = ReasoningStart::possible;
  const auto possible = answer_grammar(form, rules);
  const std::string reasoned = written({.grammar = *possible}, 1, "<think>" + thought);
  EXPECT_TRUE(reasoned.starts_with("<think>" + thought)) << reasoned;
  EXPECT_TRUE(written({.grammar = *possible}, 1, "<tool_call>").starts_with("<tool_call>"));
  form.reasoning_start = ReasoningStart::closed;
  EXPECT_TRUE(written({.grammar = *answer_grammar(form, rules)}, 1, "<think>").starts_with("<tool_call>"));
}

TEST(TextAnswerGrammar, a_schema_of_the_content_leaves_calls_possible) {
  const auto form = form_of(gguf::ToolCallForm::hermes);
  const auto grammar =
      answer_grammar(*form, {.callable = {tools()[1]}, .response_schema = R"({"enum": ["yes", "no"]})"});
  ASSERT_TRUE(grammar);
  EXPECT_EQ(expect_calls(parsed(form, written({.grammar = *grammar}, 1, "<tool_call>"))), 1U);
  EXPECT_THAT(written({.grammar = *grammar}, 1, "\""), testing::MatchesRegex("\"(yes|no)\""));
  EXPECT_EQ(answer_grammar(*form, {}).value(), "");
}

TEST(TextAnswerGrammar, a_schema_that_cannot_be_kept_to_is_an_error_where_it_must) {
  const auto form = form_of(gguf::ToolCallForm::hermes);
  auto strict = tools()[2];
  strict.strict = true;
  const auto refused = answer_grammar(*form, {.callable = {strict}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "tools[2]");
  EXPECT_THAT(refused.error().message, testing::HasSubstr("tools[2].not is not supported"));
  const auto content = answer_grammar(*form, {.response_schema = R"({"not": {}})"});
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().field, "response_format");
}

}  // namespace
}  // namespace molly::engine
