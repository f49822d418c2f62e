#include "base/os/processors.h"

#include <sched.h>

#include <algorithm>
#include <charconv>

#include "base/os/control_group.h"
#include "base/os/system_error.h"

namespace molly::base {
namespace {

constexpr std::uint32_t most_processors = CPU_SETSIZE;

std::unexpected<Error> refuse(std::string_view list, std::string_view why) {
  return failure(ErrorCode::invalid_request,
                 "'" + std::string(list.substr(0, 200)) + "' is no list of processors" + std::string(why) +
                     ": write for example 0,2-3",
                 "cpus");
}

// A whole number and nothing else.
std::optional<std::uint64_t> whole(std::string_view text) {
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

struct Range {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

// "2" or "2-3".
std::optional<Range> parse_range(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = whole(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : whole(text.substr(dash + 1));
  if (!first || !last || *first > *last) return std::nullopt;
  return Range{*first, *last};
}

}  // namespace

Result<Processors> parse_processors(std::string_view list) {
  Processors out;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    const auto range = parse_range(list.substr(at, end - at));
    if (!range) return refuse(list, "");
    if (range->last >= most_processors)
      return refuse(list, " (they end at " + std::to_string(most_processors - 1) + ")");
    for (std::uint64_t number = range->first; number <= range->last; ++number) {
      out.push_back(static_cast<std::uint32_t>(number));
    }
    at = end + 1;
  }
  std::ranges::sort(out);
  if (std::ranges::adjacent_find(out) != out.end()) return refuse(list, " (one is named twice)");
  return out;
}

std::string processors_text(std::span<const std::uint32_t> processors) {
  std::string out;
  for (std::size_t first = 0; first < processors.size();) {
    std::size_t last = first;
    while (last + 1 < processors.size() && processors[last + 1] == processors[last] + 1) ++last;
    if (!out.empty()) out += ',';
    out += std::to_string(processors[first]);
    if (last > first) out += "-" + std::to_string(processors[last]);
    first = last + 1;
  }
  return out;
}

Processors usable_processors() {
  cpu_set_t set;
  Processors out;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  for (std::uint32_t number = 0; number < most_processors; ++number) {
    if (CPU_ISSET(number, &set)) out.push_back(number);
  }
  return out;
}

Result<Processors> choose_processors(std::string_view list) {
  auto chosen = parse_processors(list);
  if (!chosen) return chosen;
  const Processors usable = usable_processors();
  Processors missing;
  std::ranges::set_difference(*chosen, usable, std::back_inserter(missing));
  if (missing.empty()) return chosen;
  return failure(ErrorCode::invalid_request,
                 "processor " + processors_text(missing) + " does not exist or may not be used here: there are " +
                     processors_text(usable),
                 "cpus");
}

std::optional<std::uint32_t> quota_cores(std::string_view quota) {
  const std::size_t space = quota.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto time = whole(quota.substr(0, space));
  const auto period = whole(quota.substr(space + 1));
  if (!time || !period || *time == 0 || *period == 0) return std::nullopt;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(*time / *period + (*time % *period > 0), most_processors));
}

bool multiplies_bytes() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
         __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vnni") != 0;
#else
  return false;
#endif
}

std::uint32_t usable_cores() {
  auto cores = static_cast<std::uint32_t>(std::max<std::size_t>(1, usable_processors().size()));
  const auto narrow = [&](const std::string& quota) { cores = std::min(cores, quota_cores(quota).value_or(cores)); };
  for (const auto& group : control_groups()) narrow(kernel_file(group / "cpu.max"));
  const std::filesystem::path version_one = "/sys/fs/cgroup/cpu";
  narrow(kernel_file(version_one / "cpu.cfs_quota_us") + " " + kernel_file(version_one / "cpu.cfs_period_us"));
  return cores;
}

Result<void> run_only_on(std::span<const std::uint32_t> processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const std::uint32_t number : processors) CPU_SET(number, &set);
  if (::sched_setaffinity(0, sizeof set, &set) == 0) return {};
  return system_failure("run on processors " + processors_text(processors));
}

}  // namespace molly::base
