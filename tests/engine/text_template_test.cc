#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cstdio>
#include <fstream>
#include <thread>

#include "../temporary_folder.h"
#include "engine/text/chat_template.h"
#include "engine/text/json_value.h"
#include "text_model.h"
#include "wire/openai.h"

extern char** environ;

namespace molly::engine {
namespace {

using testing::HasSubstr;

const std::filesystem::path folder = MOLLY_TEST_DATA "/templates";

std::string contents(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::filesystem::path> files(const std::filesystem::path& where, const std::string& extension) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(where)) {
    if (entry.path().extension() == extension) found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

// The prompt, or the refusal's sentence.
std::string rendered(const ChatTemplate& chat, const std::string& body) {
  const Request request = wire::parse_chat_request(body).value();
  TemplateOptions options;
  for (const auto& [name, value] : request.extra) {
    if (name == "chat_template_kwargs") options.extra_json = value.text;
  }
  const auto prompt = chat.render(request, options);
  return prompt ? *prompt : "error in " + prompt.error().field + ": " + prompt.error().message;
}

std::unique_ptr<ChatTemplate> parsed(std::string_view source, std::string_view beginning = "<s>",
                                     std::string_view end = "</s>") {
  auto chat = ChatTemplate::parse(source, beginning, end);
  return chat ? *std::move(chat) : nullptr;
}

std::string rendered_with(std::string_view source, const std::string& messages, const std::string& more = "") {
  const auto chat = parsed(source);
  return chat ? rendered(*chat, R"({"messages": )" + messages + more + "}") : "does not parse";
}

std::string one_user_message(std::string_view source) {
  return rendered_with(source, R"([{"role": "user", "content": "Hi"}])");
}

// MOLLY_WRITE_EXPECTED=1 in the environment writes the files anew.
TEST(TextTemplate, usual_templates_render_as_recorded) {
  const bool write = std::getenv("MOLLY_WRITE_EXPECTED") != nullptr;
  for (const auto& source : files(folder, ".jinja")) {
    const auto chat = parsed(contents(source));
    ASSERT_TRUE(chat) << source;
    for (const auto& conversation : files(folder / "conversations", ".json")) {
      const auto expected = folder / (source.stem().string() + "." + conversation.stem().string() + ".expected");
      const std::string prompt = rendered(*chat, contents(conversation));
      if (write) std::ofstream(expected, std::ios::binary) << prompt;
      EXPECT_EQ(prompt, contents(expected)) << expected;
    }
  }
}

class LlamaServer {
 public:
  explicit LlamaServer(const std::filesystem::path& chat_template) {
    const std::string socket_path = socket().string();
    const std::string model = MOLLY_SOURCE_DIR "/models/nano.gguf";
    const std::string log = (folder_.path() / "log").string();
    std::vector<std::string> words = {"llama-server",
                                      "--model",
                                      model,
                                      "--host",
                                      socket_path,
                                      "--chat-template-file",
                                      chat_template.string(),
                                      "--ctx-size",
                                      "128",
                                      "--parallel",
                                      "1",
                                      "--threads",
                                      "1",
                                      "--no-ui",
                                      "--offline",
                                      "--log-file",
                                      log};
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, 1, 2);
    if (::posix_spawnp(&process_, words[0].c_str(), &actions, nullptr, arguments.data(), environ) != 0) process_ = 0;
    ::posix_spawn_file_actions_destroy(&actions);
  }

  ~LlamaServer() {
    if (process_ == 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }

  LlamaServer(const LlamaServer&) = delete;
  LlamaServer& operator=(const LlamaServer&) = delete;

  bool is_ready() const {
    for (int tries = 0; process_ != 0 && tries < 600; ++tries) {
      if (ask("/health", "").contains("ok")) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return false;
  }

  // The answer's body; an empty one when there is none.
  std::string ask(const std::string& path, const std::string& body_file) const {
    const std::string data = body_file.empty() ? "" : " --data-binary @" + body_file;
    const std::string command = "curl -s --unix-socket " + socket().string() + data + " http://server" + path;
    FILE* out = ::popen(command.c_str(), "r");
    std::string answer;
    for (int c = 0; out != nullptr && (c = std::fgetc(out)) != EOF;) answer += static_cast<char>(c);
    if (out != nullptr) ::pclose(out);
    return answer;
  }

 private:
  std::filesystem::path socket() const { return folder_.path() / "s.sock"; }

  TemporaryFolder folder_;
  pid_t process_ = 0;
};

bool has_llama_server() { return std::system("command -v llama-server curl >/dev/null") == 0; }

// The embedded model adds no beginning token of its own, so the server leaves what the template writes.
TEST(TextTemplate, llama_server_renders_the_same_prompts) {
  ASSERT_TRUE(has_llama_server()) << "needs llama-server and curl, which packages.txt lists";
  const Vocabulary& vocabulary = embedded_vocabulary();
  const auto text = [&](std::optional<Token> token) { return vocabulary.piece(token.value(), SpecialTokens::parsed); };
  int compared = 0;
  for (const auto& source : files(folder, ".jinja")) {
    const LlamaServer server(source);
    ASSERT_TRUE(server.is_ready()) << source;
    const auto chat = parsed(contents(source), text(vocabulary.beginning()), text(vocabulary.end()));
    for (const auto& conversation : files(folder / "conversations", ".json")) {
      const std::string ours = rendered(*chat, contents(conversation));
      const std::string answer = server.ask("/apply-template", conversation.string());
      const auto theirs = parse_json(answer);
      ASSERT_TRUE(theirs) << source << conversation << answer;
      if (ours.starts_with("error in ")) continue;  // left out or refused: the server may answer all the same
      ASSERT_NE(theirs->find("prompt"), nullptr) << source << conversation << answer;
      EXPECT_EQ(ours, theirs->find("prompt")->text) << source << conversation;
      ++compared;
    }
  }
  EXPECT_GT(compared, 20);
}

TEST(TextTemplate, the_embedded_models_template_is_the_recorded_one) {
  const auto file = contents(MOLLY_SOURCE_DIR "/models/nano.gguf");
  EXPECT_TRUE(file.contains(contents(folder / "embedded.jinja")));
}

TEST(TextTemplate, a_raised_exception_is_told_in_its_words) {
  EXPECT_THAT(one_user_message("{{ raise_exception('no ' + messages[0].role) }}"), HasSubstr("messages: no user"));
  EXPECT_THAT(one_user_message("{{ messages[0].content.nothing() }}"), HasSubstr("cannot render these messages"));
}

TEST(TextTemplate, a_message_left_out_is_an_error) {
  const std::string only_users = "{% for m in messages if m.role == 'user' %}[{{ m.content }}]{% endfor %}";
  EXPECT_EQ(one_user_message(only_users), "[Hi]");
  EXPECT_THAT(rendered_with(only_users, R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "a"}])"),
              HasSubstr("error in messages[1].content: the model's chat template would leave out a message"));
}

TEST(TextTemplate, tools_left_out_are_an_error) {
  const std::string chatml = contents(folder / "chatml.jinja");
  EXPECT_THAT(rendered_with(chatml, R"([{"role": "user", "content": "time"}])",
                            R"(, "tools": [{"type": "function", "function": {"name": "time"}}])"),
              HasSubstr("error in tools: the model's chat template would leave out the tools"));
  EXPECT_FALSE(parsed(chatml)->renders_tools());
  EXPECT_TRUE(parsed(contents(folder / "qwen_tools.jinja"))->renders_tools());
}

TEST(TextTemplate, a_tool_call_left_out_is_an_error) {
  const std::string calls = R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "tool_calls":
      [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}}]}])";
  EXPECT_THAT(rendered_with(contents(folder / "chatml.jinja"), calls), HasSubstr("error in messages[1].tool_calls"));
}

TEST(TextTemplate, a_role_that_comes_out_like_another_is_an_error) {
  const std::string two_roles =
      "{% for m in messages %}{{ 'U: ' if m.role == 'user' else 'A: ' }}{{ m.content }}\n{% endfor %}";
  EXPECT_EQ(one_user_message(two_roles), "U: Hi\n");
  EXPECT_THAT(rendered_with(two_roles, R"([{"role": "user", "content": "a"}, {"role": "tool", "content": "b"}])"),
              HasSubstr("error in messages: the model's chat template would leave out the role of a message"));
}

TEST(TextTemplate, what_is_no_text_is_an_error) {
  EXPECT_THAT(
      rendered_with(contents(folder / "chatml.jinja"),
                    R"([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://a/b"}}]}])"),
      HasSubstr("error in messages[0].content[0]: this model reads text only"));
}

TEST(TextTemplate, arguments_that_are_no_json_are_an_error_where_the_template_wants_an_object) {
  const std::string call = R"([{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls":
      [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{x"}}]}])";
  EXPECT_THAT(rendered_with(contents(folder / "qwen_tools.jinja"), call),
              HasSubstr("error in messages[1].tool_calls[0].function.arguments: is not JSON"));
}

TEST(TextTemplate, texts_that_a_template_cuts_on_purpose_pass) {
  const std::string thought =
      R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "<think>b</think>c"}])";
  EXPECT_THAT(rendered_with(contents(folder / "qwen_tools.jinja"), thought), HasSubstr("assistant\nc<|im_end|>"));
}

TEST(TextTemplate, further_variables_reach_the_template_and_must_be_an_object) {
  const auto chat = parsed("{{ messages[0].content }}{{ mood }}");
  Request request = wire::parse_chat_request(R"({"messages": [{"role": "user", "content": "Hi"}]})").value();
  EXPECT_EQ(chat->render(request, {.extra_json = R"({"mood": "!"})"}).value(), "Hi!");
  EXPECT_EQ(chat->render(request, {.extra_json = "[1]"}).error().field, "chat_template_kwargs");
  EXPECT_EQ(chat->render(request, {.extra_json = "{"}).error().field, "chat_template_kwargs");
}

std::string chain(const std::string& beginning, const std::string& link, int links, const std::string& end) {
  std::string text = beginning;
  for (int count = 0; count < links; ++count) text += link;
  return text + end;
}

TEST(TextTemplate, hostile_sources_are_refused) {
  const std::string sources[] = {"{% if %}",
                                 "{{ messages",
                                 chain("{{ ", "(", 10'000, ""),
                                 chain("{{ ", "[", 60, chain("", "]", 60, "}}")),
                                 chain("", "a", 60'000, ""),
                                 chain("{{ a", ".a", 7'000, " }}"),
                                 chain("{{ a", " - a", 3'900, " }}"),
                                 chain("{{ ", "- ", 7'900, "a }}"),
                                 chain("", "{% if a %}", 1'000, chain("", "{% endif %}", 1'000, "")),
                                 chain("{{ '", "a", 60'000, "' }}"),
                                 chain("{#", "a", 60'000, "#}")};
  for (const std::string& source : sources) {
    const auto chat = ChatTemplate::parse(source, "", "");
    ASSERT_FALSE(chat) << source.substr(0, 40);
    EXPECT_EQ(chat.error().code, ErrorCode::invalid_request);
    EXPECT_EQ(chat.error().field, "chat_template");
  }
}

TEST(TextTemplate, what_is_just_within_the_bounds_parses) {
  for (const std::string& source :
       {chain("{{ ", "(", 49, "1" + chain("", ")", 49, " }}")), chain("{{ a", "~a", 300, " }}"),
        chain("", "{% if a %}", 49, chain("", "{% endif %}", 49, "")), chain("", "a", 16'000, ""),
        chain("{{ '", "a", 16'000, "' }}"), chain("{#", "a", 16'000, "#}")}) {
    EXPECT_TRUE(ChatTemplate::parse(source, "", "")) << source.substr(0, 40);
  }
}

}  // namespace
}  // namespace molly::engine
