#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>

namespace molly::config {

// Calls back on the executor after the file changed: written, replaced by a rename, created or removed.
// Looks at the file's identity, size and times at an interval rather than waiting for events, because that
// also works through symbolic links, on network file systems and in folders that do not exist yet. A change
// counts once the file has held still for one interval, so that half-written files are not read.
//
// Made and destroyed on the executor's thread, or while it does not run; after the destructor there are no calls.
class Watcher {
 public:
  Watcher(boost::asio::any_io_executor executor, std::filesystem::path file, std::function<void()> changed,
          std::chrono::milliseconds interval = std::chrono::milliseconds(250));
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

 private:
  class Poll;
  std::shared_ptr<Poll> poll_;
};

}  // namespace molly::config
