#include "engine/service/file_version.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <format>

namespace molly::engine {

Result<std::string> file_version(const std::filesystem::path& file) {
  struct stat facts{};
  if (::stat(file.c_str(), &facts) != 0) {
    return failure(ErrorCode::invalid_request, "cannot read " + file.string() + ": " + std::strerror(errno));
  }
  return std::format("{:x}-{:x}-{:x}-{:x}.{:x}", facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtim.tv_sec,
                     facts.st_mtim.tv_nsec);
}

}  // namespace molly::engine
