#pragma once

#include <cstdint>
#include <string>

#include "base/os/file_descriptor.h"
#include "core/error.h"

namespace molly::base {

// What a child prints, kept in "path" and "path.1" of at most max_bytes each (mode 0600).
class ChildLog {
 public:
  // An empty path discards.
  static Result<ChildLog> open(std::string path, std::uint64_t max_bytes);

  // The child's standard output and error; close it here once the child has it.
  int child_end() const { return writing_.get(); }
  void close_child_end() { writing_.close(); }

  // For poll(); -1 when there is nothing to read any more.
  int descriptor() const { return reading_.get(); }
  // Takes over what the child has printed so far. Never waits for the child.
  void drain();

 private:
  void keep(const char* data, std::size_t size);
  bool reopen();

  std::string path_;
  std::uint64_t max_bytes_ = 0;
  std::uint64_t written_ = 0;
  FileDescriptor reading_;
  FileDescriptor writing_;
  FileDescriptor file_;
};

}  // namespace molly::base
