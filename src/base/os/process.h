#pragma once

#include <sys/types.h>

#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/os/file_descriptor.h"
#include "core/error.h"

namespace molly::base {

struct InheritedDescriptor {
  int source = -1;  // ours
  int target = -1;  // the number that the child sees
};

struct ProcessOptions {
  std::vector<std::string> arguments;            // the first is the program's path; PATH is not searched
  std::vector<std::string> environment;          // "NAME=value"; nothing else is inherited
  std::vector<InheritedDescriptor> descriptors;  // every other descriptor is closed; 0 is /dev/null if not named,
                                                 // 1 and 2 are ours if not named
  int parent_death_signal = SIGKILL;             // what the child gets when the thread that forked it ends; 0: none
  bool own_session = false;  // away from the terminal, so that Ctrl-C reaches only us; else an own process group
};

// Forks and executes. Returns when the program runs, or with the reason (ErrorCode::io_failed) why it could not be
// started. The child starts with no signal blocked or ignored. Blocks for the time of an exec.
// The parent-death signal follows the forking thread: call this always from one thread that lives as long as
// the process.
Result<pid_t> spawn_process(const ProcessOptions& options);

struct ProcessExit {
  pid_t pid = 0;
  int status = 0;  // as from waitpid
};

// Reaps one ended child of this process, if there is one. Only one place in a program may call this.
std::optional<ProcessExit> reap_child();

// "exited with code 1", "killed by signal 9 (Killed)".
std::string describe_exit(int status);

// The program's path: `name` itself when it holds a slash, else the first executable of that name in PATH.
Result<std::filesystem::path> find_program(std::string_view name);

// This program's own file, for starting it again.
Result<std::filesystem::path> own_program();

// No core file and no other process of this user may read our memory: secrets live there.
void disable_core_dumps();

}  // namespace molly::base
