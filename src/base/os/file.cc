#include "base/os/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "base/os/system_error.h"

namespace molly::base {
namespace {

constexpr mode_t owner_only_folder = 0700;
constexpr mode_t owner_only_file = 0600;

Result<void> write_all(int descriptor, std::string_view content, const std::filesystem::path& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(descriptor, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_failure("write " + path.string());
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<void> sync_folder(const std::filesystem::path& folder) {
  const FileDescriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!descriptor || ::fsync(descriptor.get()) != 0) return system_failure("sync the folder " + folder.string());
  return {};
}

Result<void> write_and_rename(const std::string& temporary, const std::filesystem::path& path, std::string_view content,
                              Durability durability) {
  const FileDescriptor descriptor(::open(temporary.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!descriptor) return system_failure("open " + temporary);
  if (auto written = write_all(descriptor.get(), content, path); !written) return written;
  if (durability == Durability::disk && ::fsync(descriptor.get()) != 0) return system_failure("sync " + path.string());
  if (::rename(temporary.c_str(), path.c_str()) != 0) return system_failure("replace " + path.string());
  if (durability == Durability::disk) return sync_folder(path.parent_path().empty() ? "." : path.parent_path());
  return {};
}

}  // namespace

Result<void> make_private_folder(const std::filesystem::path& path) {
  if (!path.parent_path().empty() && path.parent_path() != path && ::access(path.parent_path().c_str(), F_OK) != 0) {
    if (auto above = make_private_folder(path.parent_path()); !above) return above;
  }
  if (::mkdir(path.c_str(), owner_only_folder) != 0 && errno != EEXIST) {
    return system_failure("make the folder " + path.string());
  }
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return system_failure("read the folder " + path.string());
  if (!S_ISDIR(status.st_mode)) return failure(ErrorCode::io_failed, path.string() + " is not a folder");
  if (status.st_uid != ::geteuid()) {
    return failure(ErrorCode::io_failed, "the folder " + path.string() + " belongs to another user");
  }
  if ((status.st_mode & 077) != 0 && ::chmod(path.c_str(), owner_only_folder) != 0) {
    return system_failure("close the folder " + path.string() + " to other users");
  }
  return {};
}

Result<std::string> read_file(const std::filesystem::path& path, std::uint64_t max_bytes) {
  const FileDescriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor) return system_failure("open " + path.string());
  std::string content;
  std::array<char, 16 * 1024> buffer;
  while (true) {
    const ssize_t count = ::read(descriptor.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_failure("read " + path.string());
    if (count == 0) return content;
    content.append(buffer.data(), static_cast<std::size_t>(count));
    if (content.size() > max_bytes) {
      return failure(ErrorCode::payload_too_large,
                     path.string() + " is longer than " + std::to_string(max_bytes) + " bytes");
    }
  }
}

Result<void> write_file_atomically(const std::filesystem::path& path, std::string_view content, Durability durability) {
  std::string temporary = path.string() + ".XXXXXX";
  FileDescriptor made(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!made) return system_failure("make a file beside " + path.string());
  ::fchmod(made.get(), owner_only_file);
  made.close();
  auto done = write_and_rename(temporary, path, content, durability);
  if (!done) ::unlink(temporary.c_str());
  return done;
}

Result<FileLock> FileLock::acquire(const std::filesystem::path& path) {
  FileDescriptor descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, owner_only_file));
  if (!descriptor) return system_failure("open " + path.string());
  if (::flock(descriptor.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return system_failure("lock " + path.string());
    return failure(ErrorCode::conflict, "another process holds " + path.string());
  }
  return FileLock(std::move(descriptor));
}

}  // namespace molly::base
