#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

// The parent: the small process that owns listening sockets and children, so that a crash or an upgrade of the
// control plane loses neither. It parses nothing but its own fixed protocol (protocol.h).
namespace molly::base {

struct ParentOptions {
  std::vector<std::string> listen;   // addresses as listen_on takes them; opened before the control plane starts
  std::vector<std::string> command;  // the control plane: program path and arguments. "--inherited=..." is appended:
                                     // see parse_inherited
  std::uint32_t max_children = 64;
  std::uint64_t log_bytes = 4ULL << 20;               // of one log file; two are kept for each child
  std::chrono::milliseconds first_restart_delay{20};  // after a crash; doubles with each crash in a row
  std::chrono::milliseconds max_restart_delay{5000};
  std::chrono::milliseconds stable_after{10000};       // running that long, a crash counts as the first again
  std::chrono::milliseconds replacement_limit{60000};  // a replacement that is not ready by then is given up
  std::chrono::milliseconds stop_step{2000};           // between SIGTERM, SIGTERM and SIGKILL to a model child
  std::chrono::milliseconds drain_limit{60000};        // the control plane's time to drain before SIGKILL
};

// Serves until it is told to stop; returns the exit code for the process (the control plane's own code).
//   SIGTERM, SIGINT  drain: SIGTERM to the control plane; when it is gone, stop the children; a second one: at once
//   SIGHUP           passed on to the control plane (reload of the configuration)
//   SIGUSR2          replace the control plane: start a new one, and when it says that it is ready, SIGTERM the old
// Call it on the main thread of a process with no other thread. Says on standard error what it did and why.
int run_parent(const ParentOptions& options);

struct InheritedListener {
  std::string address;  // as asked for; with port 0 ask bound_address(descriptor)
  int descriptor = -1;
};

// What the parent hands to the control plane by "--inherited=VALUE".
struct Inherited {
  int parent_socket = -1;  // for ParentClient
  std::vector<InheritedListener> listeners;
};

// Reads VALUE. The descriptors are open and the caller's to own.
Result<Inherited> parse_inherited(std::string_view value);

}  // namespace molly::base
