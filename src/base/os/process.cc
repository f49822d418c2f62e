#include "base/os/process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/os/system_error.h"

namespace molly::base {
namespace {

// Sources are first moved out of the way of every target number.
constexpr int out_of_the_way = 256;

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (const auto& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

// Everything the child needs, made before fork: after it only calls that are safe in a signal handler are allowed.
struct Preparation {
  std::vector<char*> arguments;
  std::vector<char*> environment;
  std::vector<InheritedDescriptor> descriptors;
  int parent_death_signal;
  bool own_session;
  pid_t parent;
  int failure_pipe;
};

bool place_descriptors(Preparation& preparation) {
  for (auto& descriptor : preparation.descriptors) {
    descriptor.source = ::fcntl(descriptor.source, F_DUPFD_CLOEXEC, out_of_the_way);
    if (descriptor.source < 0) return false;
  }
  preparation.failure_pipe = ::fcntl(preparation.failure_pipe, F_DUPFD_CLOEXEC, out_of_the_way);
  if (preparation.failure_pipe < 0) return false;
  if (::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) != 0) return false;
  bool has_input = false;
  for (const auto& descriptor : preparation.descriptors) {
    if (::dup2(descriptor.source, descriptor.target) < 0) return false;
    has_input |= descriptor.target == 0;
  }
  if (has_input) return true;
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  return nothing >= 0 && ::dup2(nothing, 0) == 0;
}

void reset_signals() {
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &standard, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void run_child(Preparation& preparation) {
  reset_signals();
  if (preparation.own_session) {
    ::setsid();
  } else {
    ::setpgid(0, 0);
  }
  if (preparation.parent_death_signal != 0) {
    ::prctl(PR_SET_PDEATHSIG, preparation.parent_death_signal);
    // The parent may have died before the line above; then nobody would tell us.
    if (::getppid() != preparation.parent) ::_exit(127);
  }
  if (place_descriptors(preparation)) {
    ::execve(preparation.arguments[0], preparation.arguments.data(), preparation.environment.data());
  }
  const int reason = errno;
  [[maybe_unused]] const ssize_t told = ::write(preparation.failure_pipe, &reason, sizeof reason);
  ::_exit(127);
}

// Nothing arrives when exec closed the child's end: the program runs.
std::optional<int> failure_of(int pipe_end) {
  int reason = 0;
  ssize_t count = 0;
  do count = ::read(pipe_end, &reason, sizeof reason);
  while (count < 0 && errno == EINTR);
  if (count == sizeof reason) return reason;
  return std::nullopt;
}

}  // namespace

Result<pid_t> spawn_process(const ProcessOptions& options) {
  if (options.arguments.empty()) return failure(ErrorCode::io_failed, "cannot start a program without a name");
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_failure("make a pipe");
  FileDescriptor reading(ends[0]);
  FileDescriptor writing(ends[1]);
  Preparation preparation{.arguments = pointers(options.arguments),
                          .environment = pointers(options.environment),
                          .descriptors = options.descriptors,
                          .parent_death_signal = options.parent_death_signal,
                          .own_session = options.own_session,
                          .parent = ::getpid(),
                          .failure_pipe = writing.get()};
  const pid_t child = ::fork();
  if (child < 0) return system_failure("fork");
  if (child == 0) run_child(preparation);
  writing.close();
  if (const auto reason = failure_of(reading.get())) {
    ::waitpid(child, nullptr, 0);
    return system_failure("start " + options.arguments[0], *reason);
  }
  return child;
}

std::optional<ProcessExit> reap_child() {
  ProcessExit ended;
  do ended.pid = ::waitpid(-1, &ended.status, WNOHANG);
  while (ended.pid < 0 && errno == EINTR);
  if (ended.pid <= 0) return std::nullopt;
  return ended;
}

std::string describe_exit(int status) {
  if (WIFEXITED(status)) return "exited with code " + std::to_string(WEXITSTATUS(status));
  if (!WIFSIGNALED(status)) return "changed its state";
  const int number = WTERMSIG(status);
  const char* name = ::strsignal(number);
  return "killed by signal " + std::to_string(number) + " (" + (name != nullptr ? name : "unknown") + ")";
}

Result<std::filesystem::path> find_program(std::string_view name) {
  if (name.contains('/')) {
    std::filesystem::path named(name);
    if (::access(named.c_str(), X_OK) == 0) return named;
    return failure(ErrorCode::not_found, "there is no program " + named.string());
  }
  const char* variable = std::getenv("PATH");
  std::string_view folders = variable != nullptr ? variable : "/usr/bin:/bin";
  while (!folders.empty()) {
    const std::size_t end = std::min(folders.find(':'), folders.size());
    auto candidate = std::filesystem::path(folders.substr(0, end)) / name;
    if (candidate.is_absolute() && ::access(candidate.c_str(), X_OK) == 0) return candidate;
    folders.remove_prefix(std::min(end + 1, folders.size()));
  }
  return failure(ErrorCode::not_found, "no program named " + std::string(name) + " in PATH");
}

Result<std::filesystem::path> own_program() {
  std::error_code error;
  auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return failure(ErrorCode::io_failed, "cannot find this program's own file: " + error.message());
  // After an upgrade in place the kernel says "PATH (deleted)": the new file has the old name.
  constexpr std::string_view deleted = " (deleted)";
  std::string text = path.string();
  if (text.ends_with(deleted)) text.resize(text.size() - deleted.size());
  return std::filesystem::path(text);
}

void disable_core_dumps() {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  ::prctl(PR_SET_DUMPABLE, 0);
}

}  // namespace molly::base
