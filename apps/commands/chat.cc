#include <histedit.h>
#include <unistd.h>

#include <iostream>
#include <iterator>

#include "base/json_writer.h"
#include "commands/command.h"
#include "commands/json_view.h"
#include "commands/local_server.h"
#include "wire/sse.h"

namespace molly::apps {
namespace {

struct Message {
  std::string role;
  std::string content;
};

struct Reply {
  std::string text;
  std::string route;
  std::string trace;
};

std::string request_body(const std::string& model, const std::vector<Message>& messages) {
  base::JsonWriter json;
  json.begin_object().member("model", model).member("stream", true).key("messages").begin_array();
  for (const Message& message : messages) {
    json.begin_object().member("role", message.role).member("content", message.content).end_object();
  }
  json.end_array().end_object();
  return std::move(json).text();
}

// Streams one answer; every piece is handed to `on_text` as it comes.
Result<Reply> converse(const LocalServer& server, const std::string& model, const std::vector<Message>& messages,
                       const std::function<void(std::string_view)>& on_text) {
  Reply reply;
  wire::SseParser parser;
  std::optional<Error> broken;
  const auto on_body = [&](std::string_view bytes) {
    parser.feed(bytes);
    for (auto event = parser.next(); event && *event; event = parser.next()) {
      const std::string_view data = (*event)->data;
      if (const std::string message = json_text(data, "error.message"); !message.empty()) {
        broken = Error{ErrorCode::upstream_failed, message, ""};
      }
      const auto choices = json_elements(data, "choices");
      if (choices.empty()) continue;
      const std::string text = json_text(choices.front(), "delta.content");
      if (text.empty() || text == "null") continue;
      reply.text += text;
      on_text(text);
    }
    return true;
  };
  const auto answer = server.stream("/v1/chat/completions", request_body(model, messages), on_body);
  if (!answer) return std::unexpected(answer.error());
  if (broken) return std::unexpected(*broken);
  reply.route = answer->headers.find("x-molly-route").value_or("");
  reply.trace = answer->headers.find("x-molly-trace").value_or("");
  return reply;
}

struct AskOptions {
  std::string model = "auto";
  std::string system;
  std::vector<std::string> words;
};

std::vector<Message> opening(const AskOptions& options) {
  if (options.system.empty()) return {};
  return {{"system", options.system}};
}

std::string trimmed(std::string text) {
  const auto end = text.find_last_not_of(" \t\r\n");
  text.resize(end == std::string::npos ? 0 : end + 1);
  const auto begin = text.find_first_not_of(" \t\r\n");
  return begin == std::string::npos ? "" : text.substr(begin);
}

Result<void> ask(Globals& globals, const AskOptions& options) {
  std::string question;
  for (const std::string& word : options.words) question += (question.empty() ? "" : " ") + word;
  if (!input_is_terminal()) {
    const std::string piped{std::istreambuf_iterator<char>(std::cin), {}};
    if (!piped.empty()) question += (question.empty() ? "" : "\n\n") + piped;
  }
  if (trimmed(question).empty()) {
    return failure(ErrorCode::invalid_request, "ask what? molly ask \"a question\", or pipe the text in");
  }
  const auto server = LocalServer::of(globals);
  if (!server) return std::unexpected(server.error());
  auto messages = opening(options);
  messages.push_back({"user", question});
  bool at_start = true;
  const auto print = [&](std::string_view text) {
    if (globals.json) return;
    if (at_start) text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    at_start = at_start && text.empty();
    std::cout << text << std::flush;
  };
  const auto reply = converse(*server, options.model, messages, print);
  if (!reply) return std::unexpected(reply.error());
  if (globals.json) {
    base::JsonWriter json;
    json.begin_object().member("answer", trimmed(reply->text)).member("route", reply->route);
    json.member("trace", reply->trace).end_object();
    std::cout << json.text();
  }
  std::cout << '\n';
  return {};
}

// A line from the terminal with editing and history, or from a pipe as it comes.
class LineReader {
 public:
  LineReader() {
    if (!input_is_terminal()) return;
    editor_ = el_init("molly", stdin, stdout, stderr);
    history_ = history_init();
    HistEvent event;
    history(history_, &event, H_SETSIZE, 1000);
    el_set(editor_, EL_PROMPT, +[](EditLine*) { return const_cast<char*>("you> "); });
    el_set(editor_, EL_EDITOR, "emacs");
    el_set(editor_, EL_HIST, history, history_);
  }
  ~LineReader() {
    if (editor_ == nullptr) return;
    history_end(history_);
    el_end(editor_);
  }
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  std::optional<std::string> next() {
    if (editor_ == nullptr) {
      std::string line;
      if (!std::getline(std::cin, line)) return std::nullopt;
      return line;
    }
    int count = 0;
    const char* line = el_gets(editor_, &count);
    if (line == nullptr || count <= 0) return std::nullopt;
    HistEvent event;
    history(history_, &event, H_ENTER, line);
    return std::string(line, static_cast<std::size_t>(count));
  }

 private:
  EditLine* editor_ = nullptr;
  History* history_ = nullptr;
};

constexpr std::string_view chat_help =
    "/route  which target answered last, and its trace\n"
    "/model NAME  ask another model (auto: Molly chooses)\n"
    "/new  forget this conversation\n"
    "/quit  leave\n";

class Chat {
 public:
  Chat(LocalServer server, AskOptions options)
      : server_(std::move(server)), options_(std::move(options)), messages_(opening(options_)) {}

  void run() {
    if (input_is_terminal()) std::cout << "Talking to " << options_.model << ". /help lists what else you can type.\n";
    LineReader lines;
    while (auto line = lines.next()) {
      const std::string text = trimmed(*line);
      if (text == "/quit" || text == "/exit") return;
      if (text.starts_with('/')) {
        command(text);
      } else if (!text.empty()) {
        say(text);
      }
    }
  }

 private:
  void command(const std::string& text) {
    if (text == "/route") {
      std::cout << (last_.route.empty() ? "nothing was answered yet" : last_.route + "\nmolly explain " + last_.trace)
                << '\n';
    } else if (text == "/new") {
      messages_ = opening(options_);
    } else if (text.starts_with("/model ")) {
      options_.model = trimmed(text.substr(7));
    } else {
      std::cout << chat_help;
    }
  }

  void say(const std::string& text) {
    messages_.push_back({"user", text});
    auto reply =
        converse(server_, options_.model, messages_, [](std::string_view piece) { std::cout << piece << std::flush; });
    std::cout << '\n';
    if (!reply) {
      std::cerr << "molly: " << reply.error().message << '\n';
      messages_.pop_back();
      return;
    }
    last_ = std::move(*reply);
    messages_.push_back({"assistant", trimmed(last_.text)});
  }

  LocalServer server_;
  AskOptions options_;
  std::vector<Message> messages_;
  Reply last_;
};

std::shared_ptr<AskOptions> add_options(CLI::App& command) {
  auto options = std::make_shared<AskOptions>();
  command.add_option("--model", options->model, "a model, an alias, or auto")->capture_default_str();
  command.add_option("--system", options->system, "instructions that precede the conversation");
  return options;
}

}  // namespace

void add_chat(CLI::App& app, Globals& globals) {
  CLI::App* command = add_command(app, globals, "chat", "talk to a model in the terminal");
  const auto options = add_options(*command);
  command->callback([&globals, options] {
    auto server = LocalServer::of(globals);
    if (!server) return fail(globals, server.error());
    if (const auto alive = server->get("/health"); !alive) return fail(globals, alive.error());
    Chat(std::move(*server), *options).run();
  });
}

void add_ask(CLI::App& app, Globals& globals) {
  CLI::App* command = add_command(app, globals, "ask", "ask one question; text may be piped in");
  const auto options = add_options(*command);
  command->add_option("question", options->words, "the question");
  command->callback([&globals, options] {
    if (const auto done = ask(globals, *options); !done) fail(globals, done.error());
  });
}

}  // namespace molly::apps
