#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>

namespace molly::base {

struct MemoryState {
  std::uint64_t total_bytes = 0;      // of the machine, or the control group's limit where that is lower
  std::uint64_t available_bytes = 0;  // what could be had without swapping, within the same limit
};

// Reads /proc/meminfo and the limits of our control group (v2, v1). Zeros when neither can be read.
MemoryState memory_state();

// What a process holds in memory, mapped files included; 0 when it is gone.
std::uint64_t resident_bytes(pid_t process);

// What the other child processes of our parent hold for themselves, mapped files left out.
std::uint64_t bytes_of_siblings();

// The "Name: N kB" line of a meminfo text, in bytes; 0 when absent.
std::uint64_t meminfo_bytes(std::string_view meminfo, std::string_view name);

}  // namespace molly::base
