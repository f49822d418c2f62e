#include "fake_server.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

namespace molly::targets {
namespace {

volatile std::sig_atomic_t terms_left = 1;

void on_term(int) {
  terms_left = terms_left - 1;
  if (terms_left <= 0) ::_exit(0);
}

std::map<std::string, std::string> options_of(int argc, char** argv) {
  std::map<std::string, std::string> options;
  for (int i = 1; i < argc; ++i) options[argv[i]] = i + 1 < argc ? argv[i + 1] : "";
  return options;
}

std::string answer_to(const std::string& request, const std::string& key, bool no_token) {
  const auto with = [](const char* status) {
    return std::string("HTTP/1.1 ") + status + "\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}";
  };
  if (request.starts_with("GET /health")) return with("200 OK");
  if (!request.contains("Bearer " + key + "\r\n")) return with("401 Unauthorized");
  return with(no_token ? "500 Internal Server Error" : "200 OK");
}

void serve_one(int connection, const std::string& key, bool no_token) {
  std::string request;
  char buffer[4096];
  while (!request.contains("\r\n\r\n")) {
    const ssize_t count = ::read(connection, buffer, sizeof buffer);
    if (count <= 0) return;
    request.append(buffer, static_cast<std::size_t>(count));
  }
  const std::string answer = answer_to(request, key, no_token);
  [[maybe_unused]] const ssize_t sent = ::send(connection, answer.data(), answer.size(), MSG_NOSIGNAL);
}

}  // namespace

int play_model_server(int argc, char** argv) {
  const auto options = options_of(argc, argv);
  const auto value = [&](const char* name) { return options.contains(name) ? options.at(name) : std::string(); };
  if (options.contains("--fake-exit")) return std::atoi(value("--fake-exit").c_str());
  if (options.contains("--fake-exit-unless") && ::access(value("--fake-exit-unless").c_str(), F_OK) != 0) return 1;
  if (options.contains("--fake-stubborn")) terms_left = std::atoi(value("--fake-stubborn").c_str());
  struct sigaction action{};
  action.sa_handler = on_term;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGTERM, &action, nullptr);
  while (options.contains("--fake-silent")) ::pause();
  std::string key;
  std::getline(std::ifstream(value("--api-key-file")), key);
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  value("--host").copy(address.sun_path, sizeof address.sun_path - 1);
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return 2;
  if (::listen(listener, 16) != 0) return 3;
  while (true) {
    const int connection = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    serve_one(connection, key, options.contains("--fake-no-token"));
    ::close(connection);
  }
}

}  // namespace molly::targets
