#include "config/watcher.h"

#include <sys/stat.h>

#include <array>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>

namespace molly::config {
namespace {

// Two equal stamps: the same file with the same content, as far as the file system tells. The change time
// cannot be set by programs, so a rewrite that keeps the size and restores the modification time still shows.
using Stamp = std::array<std::int64_t, 7>;

Stamp stamp_of(const std::filesystem::path& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return {};
  return {static_cast<std::int64_t>(status.st_dev),          static_cast<std::int64_t>(status.st_ino),
          static_cast<std::int64_t>(status.st_size),         static_cast<std::int64_t>(status.st_mtim.tv_sec),
          static_cast<std::int64_t>(status.st_mtim.tv_nsec), static_cast<std::int64_t>(status.st_ctim.tv_sec),
          static_cast<std::int64_t>(status.st_ctim.tv_nsec)};
}

}  // namespace

class Watcher::Poll : public std::enable_shared_from_this<Poll> {
 public:
  Poll(boost::asio::any_io_executor executor, std::filesystem::path file, std::function<void()> changed,
       std::chrono::milliseconds interval)
      : timer_(std::move(executor)),
        file_(std::move(file)),
        changed_(std::move(changed)),
        interval_(interval),
        told_(stamp_of(file_)),
        seen_(told_) {}

  void wait() {
    timer_.expires_after(interval_);
    timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
      if (!error && !self->stopped_) self->look();
    });
  }

  void stop() {
    stopped_ = true;
    timer_.cancel();
  }

 private:
  void look() {
    const Stamp now = stamp_of(file_);
    const bool still = now == seen_;
    seen_ = now;
    if (still && now != told_) {
      told_ = now;
      changed_();
    }
    if (!stopped_) wait();
  }

  boost::asio::steady_timer timer_;
  std::filesystem::path file_;
  std::function<void()> changed_;
  std::chrono::milliseconds interval_;
  Stamp told_;  // at the last callback
  Stamp seen_;  // at the last look
  bool stopped_ = false;
};

Watcher::Watcher(boost::asio::any_io_executor executor, std::filesystem::path file, std::function<void()> changed,
                 std::chrono::milliseconds interval)
    : poll_(std::make_shared<Poll>(std::move(executor), std::move(file), std::move(changed), interval)) {
  poll_->wait();
}

Watcher::~Watcher() { poll_->stop(); }

}  // namespace molly::config
