#include "base/os/control_group.h"

#include "base/os/file.h"

namespace molly::base {
namespace {

constexpr std::string_view mount_point = "/sys/fs/cgroup";

// Version 2 has one line "0::/path".
std::filesystem::path own_group() {
  const std::string groups = kernel_file("/proc/self/cgroup");
  const std::size_t start = groups.find("0::/");
  if (start == std::string::npos) return {};
  const std::size_t end = std::min(groups.find('\n', start), groups.size());
  return std::filesystem::path(mount_point) / groups.substr(start + 4, end - start - 4);
}

}  // namespace

std::vector<std::filesystem::path> control_groups() {
  std::vector<std::filesystem::path> out;
  for (auto folder = own_group(); folder.string().starts_with(mount_point); folder = folder.parent_path()) {
    out.push_back(folder);
  }
  return out;
}

std::string kernel_file(const std::filesystem::path& path) {
  constexpr std::uint64_t most_bytes = 64ULL * 1024;
  auto content = read_file(path, most_bytes);
  if (!content) return {};
  if (content->ends_with('\n')) content->pop_back();
  return *std::move(content);
}

}  // namespace molly::base
