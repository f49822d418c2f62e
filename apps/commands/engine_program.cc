#include "commands/engine_program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

#include "base/os/process.h"
#include "base/os/system_error.h"
#include "targets/supervisor_plan.h"

namespace molly::apps {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds patience{10};
constexpr std::size_t longest_answer = 1 << 20;

bool wait_for_bytes(int descriptor, Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  pollfd wanted{.fd = descriptor, .events = POLLIN, .revents = 0};
  return left > 0 && ::poll(&wanted, 1, static_cast<int>(left)) > 0;
}

std::string read_all(int descriptor) {
  std::string out;
  const auto deadline = Clock::now() + patience;
  char buffer[4096];
  while (out.size() < longest_answer && wait_for_bytes(descriptor, deadline)) {
    const ssize_t count = ::read(descriptor, buffer, sizeof buffer);
    if (count <= 0) return out;
    out.append(buffer, static_cast<std::size_t>(count));
  }
  return out;
}

}  // namespace

Result<std::string> ask_engine_for_device(const std::filesystem::path& engine) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::system_failure("make a pipe");
  const base::FileDescriptor reading(ends[0]);
  base::FileDescriptor writing(ends[1]);
  const auto child = base::spawn_process({.arguments = {engine.string(), "plan", "--json"},
                                          .environment = targets::child_environment(),
                                          .descriptors = {{.source = writing.get(), .target = STDOUT_FILENO}}});
  if (!child) return std::unexpected(child.error());
  writing = base::FileDescriptor();
  std::string answer = read_all(reading.get());
  ::kill(*child, SIGKILL);  // it has ended by itself, or is late
  int status = 0;
  ::waitpid(*child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return answer;
  return failure(ErrorCode::unavailable, engine.string() + " " + base::describe_exit(status));
}

}  // namespace molly::apps
