#pragma once

#include <sys/types.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/parent/parent_client.h"
#include "base/secret.h"
#include "core/error.h"

namespace molly::targets {

// Starts and signals processes: the parent (through ParentClient) in service, a fake in tests.
// Everything runs on the supervisor's executor.
class ChildLauncher {
 public:
  virtual ~ChildLauncher() = default;
  virtual void on_exit(std::function<void(base::ChildExit)> callback) = 0;
  virtual boost::asio::awaitable<Result<base::Child>> spawn(base::SpawnRequest request) = 0;
  virtual boost::asio::awaitable<Result<void>> signal(base::ChildId id, int signal_number) = 0;
  virtual boost::asio::awaitable<Result<base::ChildList>> list() = 0;
};

// The parent as a launcher. The client must outlive it.
std::shared_ptr<ChildLauncher> launch_through(base::ParentClient& client);

struct ChildHealth {
  bool ready = false;            // it answered 200
  std::optional<double> loaded;  // how much of the model is loaded, from 0 to 1, where it says so
};

// Asks a child over its unix socket. Each call has an own deadline of a few seconds.
class ChildProbe {
 public:
  virtual ~ChildProbe() = default;
  // GET /health.
  virtual boost::asio::awaitable<ChildHealth> health(const std::filesystem::path& socket) = 0;
  // One token of an answer: proof that the model computes. The error says what came instead.
  virtual boost::asio::awaitable<Result<void>> one_token(const std::filesystem::path& socket,
                                                         const base::Secret& key) = 0;
};

// Asks over real sockets, on that context, which must outlive it and be the supervisor's executor.
std::shared_ptr<ChildProbe> make_child_probe(boost::asio::io_context& context);

}  // namespace molly::targets
