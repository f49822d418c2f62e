#include "base/os/memory.h"

#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>

#include "base/os/control_group.h"

namespace molly::base {
namespace {

std::optional<std::uint64_t> number_of(const std::string& text) {
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc{}) return std::nullopt;  // "max": no limit
  return value;
}

void narrow(MemoryState& state, std::optional<std::uint64_t> limit, std::optional<std::uint64_t> used) {
  if (!limit || *limit >= state.total_bytes) return;
  state.total_bytes = *limit;
  const std::uint64_t free = *limit - std::min(*limit, used.value_or(0));
  state.available_bytes = std::min(state.available_bytes, free);
}

// What the kernel would have to swap: pages of files that nobody has used lately are given up when memory is wanted.
std::optional<std::uint64_t> held_by(const std::filesystem::path& group) {
  const auto used = number_of(kernel_file(group / "memory.current"));
  if (!used) return std::nullopt;
  constexpr std::string_view label = "\ninactive_file ";
  const std::string statistics = "\n" + kernel_file(group / "memory.stat");
  const std::size_t found = statistics.find(label);
  if (found == std::string::npos) return used;
  return *used - std::min(*used, number_of(statistics.substr(found + label.size())).value_or(0));
}

void narrow_by_groups(MemoryState& state) {
  for (const auto& folder : control_groups()) {
    narrow(state, number_of(kernel_file(folder / "memory.max")), held_by(folder));
  }
  const std::filesystem::path version_one = "/sys/fs/cgroup/memory";
  narrow(state, number_of(kernel_file(version_one / "memory.limit_in_bytes")),
         number_of(kernel_file(version_one / "memory.usage_in_bytes")));
}

std::filesystem::path process_folder(pid_t process) { return "/proc/" + std::to_string(process); }

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
  const std::string meminfo = kernel_file("/proc/meminfo");
  MemoryState state{.total_bytes = meminfo_bytes(meminfo, "MemTotal"),
                    .available_bytes = meminfo_bytes(meminfo, "MemAvailable")};
  narrow_by_groups(state);
  return state;
}

std::uint64_t resident_bytes(pid_t process) {
  // Pages: whole size, then resident ones.
  const std::string pages = kernel_file(process_folder(process) / "statm");
  const std::size_t space = pages.find(' ');
  if (space == std::string::npos) return 0;
  return number_of(pages.substr(space + 1)).value_or(0) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::uint64_t bytes_of_siblings() {
  std::uint64_t sum = 0;
  std::error_code none;
  for (const auto& thread : std::filesystem::directory_iterator(process_folder(::getppid()) / "task", none)) {
    std::istringstream children(kernel_file(thread.path() / "children"));
    for (pid_t child = 0; children >> child;) {
      if (child != ::getpid()) sum += meminfo_bytes(kernel_file(process_folder(child) / "status"), "RssAnon");
    }
  }
  return sum;
}

}  // namespace molly::base
