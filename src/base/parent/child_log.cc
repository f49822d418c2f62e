#include "base/parent/child_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "base/os/system_error.h"

namespace molly::base {
namespace {

// A child that prints without end must not keep the parent from its other work.
constexpr int max_reads_at_once = 16;

}  // namespace

Result<ChildLog> ChildLog::open(std::string path, std::uint64_t max_bytes) {
  ChildLog log;
  log.path_ = std::move(path);
  log.max_bytes_ = max_bytes;
  if (!log.path_.empty() && !log.reopen()) return system_failure("open the log " + log.path_);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_failure("make a pipe");
  log.reading_ = FileDescriptor(ends[0]);
  log.writing_ = FileDescriptor(ends[1]);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return log;
}

bool ChildLog::reopen() {
  file_ = FileDescriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  struct stat status{};
  written_ = file_ && ::fstat(file_.get(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
  return static_cast<bool>(file_);
}

void ChildLog::keep(const char* data, std::size_t size) {
  while (size > 0 && file_) {
    if (written_ >= max_bytes_) {
      ::rename(path_.c_str(), (path_ + ".1").c_str());
      if (!reopen()) return;
    }
    const auto part =
        static_cast<std::size_t>(std::min<std::uint64_t>(size, max_bytes_ - std::min(written_, max_bytes_)));
    const ssize_t count = ::write(file_.get(), data, part);
    if (count <= 0) return;  // a full disk loses log lines, nothing else
    written_ += static_cast<std::uint64_t>(count);
    data += count;
    size -= static_cast<std::size_t>(count);
  }
}

void ChildLog::drain() {
  char buffer[16 * 1024];
  for (int i = 0; i < max_reads_at_once && reading_; ++i) {
    const ssize_t count = ::read(reading_.get(), buffer, sizeof buffer);
    if (count > 0) {
      keep(buffer, static_cast<std::size_t>(count));
    } else if (count == 0) {
      reading_.close();
    } else if (errno != EINTR) {
      return;
    }
  }
}

}  // namespace molly::base
