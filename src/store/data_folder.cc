#include "store/data_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace molly::store {
namespace {

namespace fs = std::filesystem;

std::unexpected<Error> refused(std::string sentence) { return failure(ErrorCode::config_invalid, std::move(sentence)); }

Result<void> make_folder(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return {};
  if (errno == ENOENT && folder.has_parent_path() && folder.parent_path() != folder) {
    if (auto made = make_folder(folder.parent_path()); !made) return made;
    if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return {};
  }
  return failure(ErrorCode::io_failed, "the folder " + folder.string() + " cannot be made: " + std::strerror(errno));
}

// True: nothing but Molly's own files can be harmed by closing the folder to others.
bool may_be_closed(const fs::path& folder, const fs::path& root) {
  std::error_code problem;
  return folder != root || fs::exists(root / "molly.db", problem) || fs::is_empty(folder, problem);
}

Result<void> check_folder(const fs::path& folder, const fs::path& root) {
  const std::string name = folder.string();
  struct stat status{};
  if (::stat(folder.c_str(), &status) != 0) {
    return failure(ErrorCode::io_failed, "the folder " + name + " cannot be read: " + std::strerror(errno));
  }
  if (!S_ISDIR(status.st_mode)) return refused(name + " is not a folder");
  if (status.st_uid != ::geteuid()) {
    return refused("the folder " + name + " belongs to another user (number " + std::to_string(status.st_uid) +
                   "); use a folder of your own with --data");
  }
  if ((status.st_mode & 077) == 0) return {};
  if (!may_be_closed(folder, root)) {
    return refused("the folder " + name + " is open to others and holds other files; run: chmod 700 " + name +
                   " (or choose another with --data)");
  }
  if (::chmod(folder.c_str(), 0700) == 0) return {};
  return failure(ErrorCode::io_failed, "the folder " + name + " is open to others; run: chmod 700 " + name);
}

}  // namespace

Result<fs::path> data_path(const std::optional<fs::path>& chosen) {
  if (chosen) {
    std::error_code problem;
    auto path = fs::absolute(*chosen, problem).lexically_normal();
    // "dir/" and "dir" are one folder.
    if (!path.has_filename()) path = path.parent_path();
    if (problem || path.empty()) return refused("--data needs the path of a folder");
    return path;
  }
  // The XDG rules say that a relative path there counts as none.
  const char* data = std::getenv("XDG_DATA_HOME");
  if (data != nullptr && data[0] == '/') return fs::path(data) / "molly";
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return fs::path(home) / ".local/share/molly";
  return refused("there is no home folder to keep data in; name a folder with --data");
}

Result<DataFolder> open_data_folder(const fs::path& root) {
  const DataFolder folder{root};
  for (const auto& path : {root, folder.audit(), folder.traces(), folder.keys(), folder.run(), folder.logs()}) {
    if (auto made = make_folder(path); !made) return std::unexpected(std::move(made.error()));
    if (auto sound = check_folder(path, root); !sound) return std::unexpected(std::move(sound.error()));
  }
  return folder;
}

}  // namespace molly::store
