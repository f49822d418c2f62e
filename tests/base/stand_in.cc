#include "stand_in.h"

#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <csignal>
#include <cstdlib>
#include <iostream>

#include "base/os/process.h"
#include "base/parent/parent.h"
#include "base/parent/parent_client.h"

namespace molly::base {
namespace asio = boost::asio;
namespace {

using Unix = asio::local::stream_protocol;

int run_test_parent(const std::string& folder, const std::string& mode) {
  using std::chrono::milliseconds;
  ParentOptions options{.listen = {"unix:" + folder + "/listen"},
                        .command = {own_program()->string(), "--act-as", "control-plane", folder, mode},
                        .max_children = 4,
                        .log_bytes = 10'000,
                        .stop_step = milliseconds(100),
                        .drain_limit = milliseconds(300)};
  options.replacement_limit = milliseconds(300);
  return run_parent(options);
}

// Obeys one-word commands on the inherited listening socket, one for each connection.
class TestControlPlane {
 public:
  TestControlPlane(asio::io_context& context, const Inherited& inherited, std::string folder, std::string mode)
      : context_(context),
        client_(context.get_executor(), FileDescriptor(inherited.parent_socket)),
        acceptor_(context, Unix(), inherited.listeners.at(0).descriptor),
        folder_(std::move(folder)),
        mode_(std::move(mode)) {}

  void start() {
    client_.on_exit([this](ChildExit ended) { exits_ += describe_exit(ended.status) + ";"; });
    client_.start();
    if (mode_ != "never-ready" || ::access((folder_ + "/first").c_str(), F_OK) != 0) client_.announce_ready();
    std::fclose(std::fopen((folder_ + "/first").c_str(), "a"));
    asio::co_spawn(context_, serve(), asio::detached);
  }

 private:
  asio::awaitable<void> serve() {
    while (true) {
      auto connection = co_await acceptor_.async_accept(asio::use_awaitable);
      std::string line;
      co_await asio::async_read_until(connection, asio::dynamic_buffer(line), '\n',
                                      asio::as_tuple(asio::use_awaitable));
      if (line.empty()) continue;
      line.pop_back();
      const std::string answer = co_await obey(line);
      co_await asio::async_write(connection, asio::buffer(answer), asio::as_tuple(asio::use_awaitable));
    }
  }

  asio::awaitable<std::string> obey(const std::string& command) {
    if (command == "pid") co_return std::to_string(::getpid());
    if (command == "exits") co_return exits_;
    if (command == "crash") std::abort();
    if (command == "replace") client_.request_replacement();
    if (command == "list") co_return co_await list();
    if (command == "sleep") co_return co_await spawn({"/bin/sleep", "1000"});
    if (command == "stubborn") {
      co_return co_await spawn(
          {"/bin/sh", "-c", "trap '' TERM; echo >" + folder_ + "/deaf; while :; do sleep 0.05; done"});
    }
    if (command == "chatter") co_return co_await spawn({"/usr/bin/seq", "1", "20000"});
    if (command == "nonsense") co_return co_await spawn({"/no/such/program"});
    if (command.starts_with("kill ")) {
      const auto done = co_await client_.signal(std::stoull(command.substr(5)), SIGKILL);
      co_return done ? "done" : done.error().message;
    }
    if (command.starts_with("listen ")) {
      auto socket = co_await client_.listen(command.substr(7));
      co_return socket ? "listening" : socket.error().message;
    }
    co_return "?";
  }

  asio::awaitable<std::string> spawn(std::vector<std::string> arguments) {
    const auto child = co_await client_.spawn({.arguments = std::move(arguments),
                                               .environment = {"PATH=/usr/bin:/bin"},
                                               .log_path = folder_ + "/log",
                                               .blob = "remember me"});
    co_return child ? std::to_string(child->pid) : child.error().message;
  }

  asio::awaitable<std::string> list() {
    const auto children = co_await client_.list();
    if (!children) co_return children.error().message;
    std::string text;
    for (const auto& child : children->children) {
      text += std::to_string(child.id) + "=" + std::to_string(child.pid) + "(" + child.blob + ");";
    }
    co_return text;
  }

  asio::io_context& context_;
  ParentClient client_;
  Unix::acceptor acceptor_;
  std::string folder_;
  std::string mode_;
  std::string exits_;
};

int run_test_control_plane(const std::string& folder, const std::string& mode, std::string_view argument) {
  if (mode == "refuses-to-start") return 3;
  const auto inherited = parse_inherited(argument.substr(std::string_view("--inherited=").size()));
  if (!inherited) return 4;
  asio::io_context context(1);
  TestControlPlane plane(context, *inherited, folder, mode);
  plane.start();
  asio::signal_set signals(context, SIGTERM);
  if (mode != "deaf") signals.async_wait([&](auto, int) { context.stop(); });
  context.run();
  return mode == "exits-with-5" ? 5 : 0;
}

}  // namespace

int act_as(int argc, char** argv) {
  const std::string part = argc > 0 ? argv[0] : "";
  if (part == "parent" && argc == 3) return run_test_parent(argv[1], argv[2]);
  if (part == "control-plane" && argc == 4) return run_test_control_plane(argv[1], argv[2], argv[3]);
  return 64;
}

}  // namespace molly::base
