#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "engine/service/answer_stream.h"
#include "engine/text/answer/answer_parser.h"
#include "engine/text/answer/reasoning.h"

namespace molly::engine {
namespace {

struct Transcript {
  std::string name;
  std::string text;
  std::string parts;
};

struct TranscriptFile {
  AnswerForm form;
  std::vector<Transcript> transcripts;
};

constexpr std::pair<std::string_view, gguf::ToolCallForm> forms[] = {
    {"hermes", gguf::ToolCallForm::hermes},
    {"llama3", gguf::ToolCallForm::llama3},
    {"mistral_list", gguf::ToolCallForm::mistral_list},
    {"mistral_args", gguf::ToolCallForm::mistral_args}};

const CallFormat* format_named(std::string_view name) {
  const auto* found = std::ranges::find(forms, name, &std::pair<std::string_view, gguf::ToolCallForm>::first);
  return found == std::end(forms) ? nullptr : call_format(found->second);
}

void read_header(const std::string& line, AnswerForm& form) {
  std::istringstream words(line);
  std::string key;
  std::string word;
  words >> key;
  if (key == "calls" && words >> word) form.calls = format_named(word);
  while (key == "tools" && words >> word) form.tools.push_back(word);
  ReasoningTags tags;
  if (key != "reasoning" || !(words >> tags.open >> tags.close >> word)) return;
  form.reasoning = tags;
  form.reasoning_start = word == "opened"   ? ReasoningStart::opened
                         : word == "closed" ? ReasoningStart::closed
                                            : ReasoningStart::possible;
}

// Lines of a part of the file, without the empty one that may end it.
std::string until(std::istream& in, std::string_view end, std::string& line) {
  std::string text;
  while (std::getline(in, line) && !line.starts_with(end)) text += line + "\n";
  return text;
}

TranscriptFile read_transcripts(const std::filesystem::path& path) {
  std::ifstream in(path);
  TranscriptFile file;
  std::string line;
  while (std::getline(in, line) && !line.starts_with("=== ")) read_header(line, file.form);
  while (line.starts_with("=== ")) {
    Transcript one{.name = line.substr(4), .text = {}, .parts = {}};
    one.text = until(in, "---", line);
    one.text.pop_back();
    one.parts = until(in, "=== ", line);
    if (one.parts.ends_with("\n\n")) one.parts.pop_back();
    file.transcripts.push_back(std::move(one));
  }
  return file;
}

std::string spelled(const std::vector<AnswerPart>& parts) {
  constexpr std::string_view kinds[] = {"content   ", "reasoning ", "call      ", "arguments "};
  std::string text;
  std::optional<AnswerPart::Kind> last;
  for (const AnswerPart& part : parts) {
    const bool continues = last == part.kind && part.kind != AnswerPart::Kind::call;
    if (!continues) text += (last ? "\n" : "") + std::string(kinds[static_cast<std::size_t>(part.kind)]);
    for (const char c : part.text) text += c == '\n' ? "\\n" : std::string(1, c);
    last = part.kind;
  }
  return last ? text + "\n" : text;
}

// `next_length` says how long the next piece is.
template <class Length>
std::string parsed(const AnswerForm& form, std::string_view text, Length&& next_length) {
  AnswerParser parser(std::make_shared<AnswerForm>(form));
  std::vector<AnswerPart> parts;
  const auto add = [&](const std::vector<AnswerPart>& more) { parts.insert(parts.end(), more.begin(), more.end()); };
  while (!text.empty()) {
    const std::size_t length = std::min<std::size_t>(next_length(), text.size());
    add(parser.append(text.substr(0, length)));
    text.remove_prefix(length);
  }
  add(parser.finish());
  return spelled(parts);
}

TEST(TextAnswer, transcripts_however_they_are_cut) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(MOLLY_TEST_DATA "/answers")) {
    if (entry.path().extension() != ".txt") continue;
    const TranscriptFile file = read_transcripts(entry.path());
    ASSERT_FALSE(file.transcripts.empty()) << entry.path();
    std::mt19937 random(1);
    for (const Transcript& one : file.transcripts) {
      SCOPED_TRACE(entry.path().filename().string() + ": " + one.name);
      EXPECT_EQ(parsed(file.form, one.text, [] { return 100'000; }), one.parts);
      EXPECT_EQ(parsed(file.form, one.text, [] { return 1; }), one.parts);
      for (int round = 0; round < 20; ++round) {
        EXPECT_EQ(parsed(file.form, one.text, [&] { return 1 + random() % 9; }), one.parts);
      }
      ++count;
    }
  }
  EXPECT_GT(count, 40);
}

TEST(TextAnswer, how_a_prompt_ends_says_whether_reasoning_has_begun) {
  const ReasoningTags tags{"<think>", "</think>"};
  EXPECT_EQ(reasoning_start(tags, "<|im_start|>assistant\n<think>\n"), ReasoningStart::opened);
  EXPECT_EQ(reasoning_start(tags, "<|im_start|>assistant\n<think>\n\n</think>\n\n"), ReasoningStart::closed);
  EXPECT_EQ(reasoning_start(tags, "<|im_start|>assistant\n"), ReasoningStart::possible);
  EXPECT_EQ(reasoning_tags("{{ messages }}"), std::nullopt);
  EXPECT_EQ(reasoning_tags("{{ '[THINK]' }}{{ '[/THINK]' }}")->close, "[/THINK]");
}

std::shared_ptr<const AnswerForm> hermes_form() {
  AnswerForm form{.calls = &hermes_calls(), .tools = {"weather"}, .reasoning = ReasoningTags{"<think>", "</think>"}};
  return std::make_shared<AnswerForm>(std::move(form));
}

TEST(TextAnswer, a_call_is_told_with_its_name_and_id_first_and_its_arguments_as_they_come) {
  AnswerStream stream(hermes_form(), {});
  EXPECT_TRUE(stream.append(R"(<tool_call>{"name": "weather", "arguments": )").is_empty());
  const AnswerDelta begun = stream.append(R"({"pla)");
  ASSERT_EQ(begun.calls.size(), 1U);
  EXPECT_EQ(begun.calls[0].name, "weather");
  EXPECT_TRUE(begun.calls[0].id.starts_with("call_"));
  EXPECT_EQ(begun.calls[0].arguments, R"({"pla)");
  const AnswerDelta later = stream.append(R"(ce": "Paris"}}</tool_call>)");
  ASSERT_EQ(later.calls.size(), 1U);
  EXPECT_EQ(later.calls[0].index, 0U);
  EXPECT_EQ(later.calls[0].id + later.calls[0].name, "");
  EXPECT_EQ(later.calls[0].arguments, R"(ce": "Paris"})");
}

TEST(TextAnswer, a_stop_string_is_one_in_the_content_only) {
  AnswerStream stream(hermes_form(), {"}", "stop"});
  EXPECT_EQ(stream.append("<think>do not stop}</think>").reasoning, "do not stop}");
  EXPECT_EQ(stream.append(R"(<tool_call>{"name": "weather", "arguments": {}}</tool_call>)").calls.size(), 1U);
  EXPECT_FALSE(stream.stopped());
  EXPECT_EQ(stream.append("Now stop here").content, "Now ");
  EXPECT_TRUE(stream.stopped());
}

TEST(TextAnswer, characters_are_never_cut) {
  AnswerStream stream(hermes_form(), {});
  EXPECT_TRUE(stream.append("<think>\xc3").is_empty());
  EXPECT_EQ(stream.append("\xa4</think>\xe4\xbd").reasoning, "ä");
  EXPECT_EQ(stream.append("\xa0").content, "你");
  EXPECT_EQ(stream.append("<tool_call>{\"name\": \"weather\", \"arguments\": {\"\xf0\x9f").calls[0].arguments, "{\"");
  EXPECT_EQ(stream.append("\x99\x82\": 1}").calls[0].arguments, "🙂\": 1}");
}

TEST(TextAnswer, ids_have_the_form_that_the_template_wants) {
  AnswerForm form{.calls = &mistral_args_calls(), .tools = {"weather"}};
  AnswerStream stream(std::make_shared<AnswerForm>(form), {});
  const auto delta = stream.append("[TOOL_CALLS]weather[ARGS]{}[TOOL_CALLS]weather[ARGS]{}");
  ASSERT_EQ(delta.calls.size(), 2U);
  for (const ToolCallDelta& call : delta.calls) EXPECT_THAT(call.id, testing::MatchesRegex("[a-zA-Z0-9]{9}"));
  EXPECT_NE(delta.calls[0].id, delta.calls[1].id);
  EXPECT_EQ(delta.calls[1].index, 1U);
}

}  // namespace
}  // namespace molly::engine
