#pragma once

#include <initializer_list>
#include <optional>

#include "base/os/file_descriptor.h"
#include "core/error.h"

namespace molly::base {

// Signals as readable events: blocks the named ones for this thread (make it before any other thread starts)
// and hands them out one by one. Restores nothing on destruction: a program decides once.
class SignalEvents {
 public:
  static Result<SignalEvents> open(std::initializer_list<int> signals);

  // For poll(): readable while a signal waits.
  int descriptor() const { return descriptor_.get(); }
  // The next waiting signal. Never blocks.
  std::optional<int> next();

 private:
  explicit SignalEvents(FileDescriptor descriptor) : descriptor_(std::move(descriptor)) {}
  FileDescriptor descriptor_;
};

// A write to a closed socket is an error value, not a signal.
void ignore_broken_pipe();

}  // namespace molly::base
