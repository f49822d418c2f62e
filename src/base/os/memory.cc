#include "base/os/memory.h"

#include <unistd.h>

#include <charconv>
#include <optional>
#include <string>

#include "base/os/file.h"

namespace molly::base {
namespace {

constexpr std::uint64_t small_file = 64 * 1024;

std::string text_of(const std::filesystem::path& path) {
  auto content = read_file(path, small_file);
  return content ? *std::move(content) : std::string();
}

std::optional<std::uint64_t> number_of(const std::string& text) {
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc{}) return std::nullopt;  // "max": no limit
  return value;
}

// The folder of our group under /sys/fs/cgroup; version 2 has one line "0::/path".
std::filesystem::path group_folder() {
  const std::string groups = text_of("/proc/self/cgroup");
  const std::size_t start = groups.find("0::/");
  if (start == std::string::npos) return {};
  const std::size_t end = std::min(groups.find('\n', start), groups.size());
  return std::filesystem::path("/sys/fs/cgroup") / groups.substr(start + 4, end - start - 4);
}

void narrow(MemoryState& state, std::optional<std::uint64_t> limit, std::optional<std::uint64_t> used) {
  if (!limit || *limit >= state.total_bytes) return;
  state.total_bytes = *limit;
  const std::uint64_t free = *limit - std::min(*limit, used.value_or(0));
  state.available_bytes = std::min(state.available_bytes, free);
}

// A limit of any group above ours binds too.
void narrow_by_groups(MemoryState& state) {
  for (auto folder = group_folder(); folder.string().starts_with("/sys/fs/cgroup"); folder = folder.parent_path()) {
    narrow(state, number_of(text_of(folder / "memory.max")), number_of(text_of(folder / "memory.current")));
  }
  const std::filesystem::path version_one = "/sys/fs/cgroup/memory";
  narrow(state, number_of(text_of(version_one / "memory.limit_in_bytes")),
         number_of(text_of(version_one / "memory.usage_in_bytes")));
}

}  // namespace

std::uint64_t meminfo_bytes(std::string_view meminfo, std::string_view name) {
  const std::string label = std::string(name) + ":";
  std::size_t start = meminfo.starts_with(label) ? 0 : meminfo.find("\n" + label);
  if (start == std::string_view::npos) return 0;
  start = meminfo.find_first_of("0123456789", meminfo.find(':', start));
  if (start == std::string_view::npos) return 0;
  std::uint64_t kilobytes = 0;
  std::from_chars(meminfo.data() + start, meminfo.data() + meminfo.size(), kilobytes);
  return kilobytes * 1024;
}

MemoryState memory_state() {
  const std::string meminfo = text_of("/proc/meminfo");
  MemoryState state{.total_bytes = meminfo_bytes(meminfo, "MemTotal"),
                    .available_bytes = meminfo_bytes(meminfo, "MemAvailable")};
  narrow_by_groups(state);
  return state;
}

std::uint64_t resident_bytes(pid_t process) {
  // Pages: whole size, then resident ones.
  const std::string pages = text_of("/proc/" + std::to_string(process) + "/statm");
  const std::size_t space = pages.find(' ');
  if (space == std::string::npos) return 0;
  return number_of(pages.substr(space + 1)).value_or(0) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace molly::base
