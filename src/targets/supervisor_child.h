#pragma once

#include <sys/types.h>

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
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

enum class Health : std::uint8_t {
  silent,   // nothing listens yet
  loading,  // answers, but is not ready (503)
  ready,    // 200
};

// Asks a child over its unix socket. Each call has an own deadline of a few seconds.
class ChildProbe {
 public:
  virtual ~ChildProbe() = default;
  // GET /health.
  virtual boost::asio::awaitable<Health> health(const std::filesystem::path& socket) = 0;
  // One token of an answer: proof that the model computes. The error says what came instead.
  virtual boost::asio::awaitable<Result<void>> one_token(const std::filesystem::path& socket,
                                                         const base::Secret& key) = 0;
};

}  // namespace molly::targets
