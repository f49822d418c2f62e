#include "config/secret_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace molly::config {
namespace {

constexpr std::size_t longest_secret = 64 << 10;

std::unexpected<Error> refused(std::string sentence) { return failure(ErrorCode::config_invalid, std::move(sentence)); }

bool is_variable_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; };
  const auto allowed = [&](char c) { return letter(c) || (c >= '0' && c <= '9'); };
  return !name.empty() && name.size() <= 100 && letter(name.front()) && std::ranges::all_of(name, allowed);
}

std::string_view without_line_ends(std::string_view text) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

Result<base::Secret> from_environment(std::string_view name) {
  if (!is_variable_name(name)) return refused("\"env:\" must be followed by the name of an environment variable");
  const std::string variable(name);
  const char* value = std::getenv(variable.c_str());
  if (value == nullptr) return refused("the environment variable " + variable + " is not set");
  const std::string_view text = without_line_ends(value);
  if (text.empty()) return refused("the environment variable " + variable + " is empty");
  return base::Secret(text);
}

class OpenFile {
 public:
  explicit OpenFile(const std::filesystem::path& path)
      : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

Result<void> check_owner_only(const struct stat& status, const std::string& name) {
  if (status.st_uid != 0 && status.st_uid != ::geteuid()) {
    return refused("the secret file " + name + " belongs to another user");
  }
  if (status.st_uid != 0 && (status.st_mode & 077) != 0) {
    return refused("the secret file " + name + " can be read by others; run: chmod 600 " + name);
  }
  return {};
}

Result<base::Secret> read_all(int file, const std::string& name) {
  std::string buffer(longest_secret + 1, '\0');
  std::size_t filled = 0;
  ssize_t got = 0;
  do {
    got = ::read(file, buffer.data() + filled, buffer.size() - filled);
    if (got > 0) filled += static_cast<std::size_t>(got);
  } while (got > 0 || (got < 0 && errno == EINTR));
  base::Secret secret(without_line_ends(std::string_view(buffer).substr(0, filled)));
  base::wipe(buffer.data(), buffer.size());
  if (got < 0) return refused("the secret file " + name + " cannot be read: " + std::strerror(errno));
  if (filled > longest_secret) return refused("the secret file " + name + " is longer than 64 KiB");
  if (secret.empty()) return refused("the secret file " + name + " is empty");
  return secret;
}

Result<base::Secret> from_file(const std::filesystem::path& path) {
  const std::string name = path.string();
  const OpenFile file(path);
  if (file.number() < 0) return refused("the secret file " + name + " cannot be opened: " + std::strerror(errno));
  struct stat status{};
  if (::fstat(file.number(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return refused("the secret file " + name + " is not a regular file");
  }
  if (auto owned = check_owner_only(status, name); !owned) return std::unexpected(std::move(owned.error()));
  return read_all(file.number(), name);
}

}  // namespace

Result<base::Secret> read_secret(std::string_view source, const std::filesystem::path& folder) {
  constexpr std::string_view environment = "env:";
  constexpr std::string_view file = "file:";
  if (source.starts_with(environment)) return from_environment(source.substr(environment.size()));
  if (source.starts_with(file) && source.size() > file.size()) {
    return from_file(folder / std::filesystem::path(source.substr(file.size())));
  }
  return refused(
      "a secret never stands in this file: write \"env:NAME\" or \"file:PATH\" instead (and change the secret if it "
      "stood here)");
}

}  // namespace molly::config
