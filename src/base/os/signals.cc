#include "base/os/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>

#include "base/os/system_error.h"

namespace molly::base {

Result<SignalEvents> SignalEvents::open(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : signals) sigaddset(&set, number);
  if (const int error = ::pthread_sigmask(SIG_BLOCK, &set, nullptr); error != 0) {
    return system_failure("block signals", error);
  }
  FileDescriptor descriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!descriptor) return system_failure("open a signal descriptor");
  return SignalEvents(std::move(descriptor));
}

std::optional<int> SignalEvents::next() {
  signalfd_siginfo information{};
  ssize_t count = 0;
  do count = ::read(descriptor_.get(), &information, sizeof information);
  while (count < 0 && errno == EINTR);
  if (count != sizeof information) return std::nullopt;
  return static_cast<int>(information.ssi_signo);
}

void ignore_broken_pipe() { std::signal(SIGPIPE, SIG_IGN); }

}  // namespace molly::base
