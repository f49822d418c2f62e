#pragma once

#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/os/file_descriptor.h"
#include "core/error.h"

namespace molly::base {

// A child process of the parent, which numbers them; a number is never used twice while the parent lives.
using ChildId = std::uint64_t;

struct SpawnRequest {
  std::vector<std::string> arguments;    // the first is the program's path
  std::vector<std::string> environment;  // "NAME=value", complete
  std::string log_path;                  // standard output and error, bounded and rotated; empty: discarded
  std::string blob;                      // ours to remember the child by after a crash, at most 4 KiB; no secrets
};

struct Child {
  ChildId id = 0;
  pid_t pid = 0;
  std::string blob;
};

struct ChildExit {
  ChildId id = 0;
  int status = 0;  // as from waitpid: see describe_exit
};

struct ChildList {
  std::vector<Child> children;
  bool predecessor_draining = false;  // an older control plane still finishes its requests on these children
};

// The control plane's end of the parent's protocol. All members and callbacks run on `executor` (one thread or a
// strand); every call ends within five seconds (ErrorCode::timeout). Errors: ErrorCode::io_failed when the parent
// is gone or could not do it, ErrorCode::conflict when this control plane has been replaced.
class ParentClient {
 public:
  ParentClient(boost::asio::any_io_executor executor, FileDescriptor socket);
  ~ParentClient();
  ParentClient(const ParentClient&) = delete;
  ParentClient& operator=(const ParentClient&) = delete;

  // Called once for each child that ended, after its spawn was answered.
  void on_exit(std::function<void(ChildExit)> callback);
  // Called when the parent is gone: the process must end.
  void on_lost(std::function<void()> callback);
  // Starts to receive; set the callbacks before.
  void start();
  // Ends every waiting call with ErrorCode::cancelled.
  void stop();

  boost::asio::awaitable<Result<Child>> spawn(SpawnRequest request);
  boost::asio::awaitable<Result<void>> signal(ChildId id, int signal_number);
  boost::asio::awaitable<Result<ChildList>> list();
  // Opens a further listening socket in the parent, or hands out the one that is open under that address.
  boost::asio::awaitable<Result<FileDescriptor>> listen(std::string address);

  // This control plane serves: one that it replaces is told to drain.
  void announce_ready();
  // As SIGUSR2 to the parent: a new control plane replaces this one.
  void request_replacement();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace molly::base
