#include "config/file.h"

#include <cerrno>
#include <cstdlib>
#include <fstream>

namespace molly::config {
namespace {

constexpr std::uintmax_t longest_file = 4 << 20;

std::unexpected<Error> unreadable(const std::filesystem::path& path, std::string_view reason) {
  return failure(ErrorCode::io_failed,
                 "the configuration file " + path.string() + " cannot be read: " + std::string(reason));
}

std::optional<std::filesystem::path> absolute_from_environment(const char* name) {
  const char* value = std::getenv(name);
  // The XDG rules say that a relative path there counts as none.
  if (value == nullptr || value[0] != '/') return std::nullopt;
  return std::filesystem::path(value);
}

}  // namespace

Result<Document> load_file(const std::filesystem::path& path) {
  std::error_code problem;
  const auto status = std::filesystem::status(path, problem);
  if (!std::filesystem::exists(status)) return unreadable(path, "there is no such file");
  if (!std::filesystem::is_regular_file(status)) return unreadable(path, "it is not a regular file");
  std::ifstream in(path, std::ios::binary);
  if (!in) return unreadable(path, std::strerror(errno));
  std::string text(longest_file + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) return unreadable(path, "reading failed");
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > longest_file) return unreadable(path, "it is longer than 4 MiB");
  return Document::parse(text, path.string());
}

std::filesystem::path default_path() {
  constexpr std::string_view file = "molly/molly.toml";
  if (const auto folder = absolute_from_environment("XDG_CONFIG_HOME")) return *folder / file;
  if (const auto home = absolute_from_environment("HOME")) return *home / ".config" / file;
  return std::filesystem::path("/etc") / file;
}

Result<Found> find_config(const std::optional<std::filesystem::path>& chosen) {
  const auto path = chosen.value_or(default_path());
  std::error_code problem;
  if (!chosen && std::filesystem::status(path, problem).type() == std::filesystem::file_type::not_found) {
    return Found{path, Document::empty()};
  }
  auto document = load_file(path);
  if (!document) return std::unexpected(std::move(document.error()));
  return Found{path, std::move(*document)};
}

}  // namespace molly::config
