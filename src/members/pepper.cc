#include "members/pepper.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace molly::members {
namespace {

constexpr std::size_t pepper_size = 32;

class File {
 public:
  File(const std::filesystem::path& path, int flags) : number_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }

 private:
  int number_;
};

std::unexpected<Error> failed(const std::filesystem::path& file, std::string_view what) {
  return failure(ErrorCode::io_failed, "the file " + file.string() + " " + std::string(what));
}

Result<base::Secret> read_pepper(const std::filesystem::path& path) {
  const File file(path, O_RDONLY | O_NOFOLLOW);
  if (!file.is_open()) return failed(path, std::string("cannot be opened: ") + std::strerror(errno));
  struct stat status{};
  if (::fstat(file.number(), &status) != 0 || !S_ISREG(status.st_mode)) return failed(path, "is not a regular file");
  if (status.st_uid != ::geteuid()) return failed(path, "belongs to another user");
  if ((status.st_mode & 077) != 0) return failed(path, "can be read by others; run: chmod 600 " + path.string());
  std::string bytes(pepper_size + 1, '\0');
  const ssize_t got = ::read(file.number(), bytes.data(), bytes.size());
  base::Secret pepper(std::string_view(bytes).substr(0, pepper_size));
  base::wipe(bytes.data(), bytes.size());
  if (got != static_cast<ssize_t>(pepper_size)) return failed(path, "is damaged; restore it from a backup");
  return pepper;
}

// Written aside and linked into place, which fails where another process was first: then theirs counts.
Result<void> make_pepper(const std::filesystem::path& path) {
  const std::filesystem::path aside = path.string() + "." + std::to_string(::getpid());
  ::unlink(aside.c_str());
  std::array<std::uint8_t, pepper_size> bytes{};
  ::randombytes_buf(bytes.data(), bytes.size());
  bool written = false;
  {
    const File file(aside, O_WRONLY | O_CREAT | O_EXCL);
    written = file.is_open() && ::write(file.number(), bytes.data(), bytes.size()) == ssize_t{pepper_size} &&
              ::fsync(file.number()) == 0;
  }
  base::wipe(bytes.data(), bytes.size());
  const bool placed = written && (::link(aside.c_str(), path.c_str()) == 0 || errno == EEXIST);
  const int problem = errno;
  ::unlink(aside.c_str());
  const File folder(path.parent_path(), O_RDONLY | O_DIRECTORY);
  if (placed && folder.is_open() && ::fsync(folder.number()) == 0) return {};
  return failed(path, std::string("cannot be written: ") + std::strerror(problem));
}

}  // namespace

Result<base::Secret> open_pepper(const std::filesystem::path& file, PepperUse use) {
  struct stat status{};
  const bool absent = ::lstat(file.c_str(), &status) != 0 && errno == ENOENT;
  if (absent && use == PepperUse::existing) {
    return failed(file, "is missing, and without it no key can be recognised; restore it from a backup");
  }
  if (absent) {
    if (auto made = make_pepper(file); !made) return std::unexpected(std::move(made.error()));
  }
  return read_pepper(file);
}

}  // namespace molly::members
