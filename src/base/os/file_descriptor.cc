#include "base/os/file_descriptor.h"

#include <unistd.h>

namespace molly::base {

void FileDescriptor::close() noexcept {
  // EINTR is no reason to try again: on Linux the number is free either way.
  if (number_ >= 0) ::close(std::exchange(number_, -1));
}

}  // namespace molly::base
