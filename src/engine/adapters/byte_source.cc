#include "engine/adapters/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/os/file_descriptor.h"
#include "base/os/system_error.h"

namespace molly::engine {
namespace {

class FileBytes : public ByteSource {
 public:
  FileBytes(base::FileDescriptor file, std::uint64_t size, std::filesystem::path path)
      : file_(std::move(file)), size_(size), path_(std::move(path)) {}

  std::uint64_t size() const override { return size_; }

  Result<std::size_t> read_some(std::uint64_t offset, std::span<std::uint8_t> into) const override {
    std::size_t have = 0;
    while (have < into.size()) {
      const ssize_t count =
          ::pread(file_.get(), into.data() + have, into.size() - have, static_cast<off_t>(offset + have));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return base::system_failure("read " + path_.string());
      if (count == 0) break;
      have += static_cast<std::size_t>(count);
    }
    return have;
  }

 private:
  base::FileDescriptor file_;
  std::uint64_t size_;
  std::filesystem::path path_;
};

class MemoryBytes : public ByteSource {
 public:
  explicit MemoryBytes(std::vector<std::uint8_t> bytes) : bytes_(std::move(bytes)) {}

  std::uint64_t size() const override { return bytes_.size(); }

  Result<std::size_t> read_some(std::uint64_t offset, std::span<std::uint8_t> into) const override {
    const auto rest = std::span(bytes_).subspan(std::min<std::uint64_t>(offset, bytes_.size()));
    const std::size_t count = std::min(rest.size(), into.size());
    std::copy_n(rest.begin(), count, into.begin());
    return count;
  }

 private:
  std::vector<std::uint8_t> bytes_;
};

}  // namespace

Result<void> ByteSource::read(std::uint64_t offset, std::span<std::uint8_t> into) const {
  const auto count = read_some(offset, into);
  if (!count) return std::unexpected(count.error());
  if (*count == into.size()) return {};
  return failure(ErrorCode::invalid_request, "the file is cut off: it ends within its numbers");
}

Result<std::shared_ptr<const ByteSource>> open_bytes(const std::filesystem::path& path) {
  base::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return base::system_failure("open " + path.string());
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return base::system_failure("read " + path.string());
  if (!S_ISREG(status.st_mode)) return failure(ErrorCode::io_failed, path.string() + " is not a file");
  // All of it will be read, piece by piece: the disk may begin at once.
  ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_WILLNEED);
  return std::make_shared<FileBytes>(std::move(file), static_cast<std::uint64_t>(status.st_size), path);
}

std::shared_ptr<const ByteSource> bytes_in_memory(std::vector<std::uint8_t> bytes) {
  return std::make_shared<MemoryBytes>(std::move(bytes));
}

}  // namespace molly::engine
