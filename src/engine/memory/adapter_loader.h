#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "core/error.h"
#include "engine/adapters/image.h"
#include "engine/memory/adapter_cache.h"

namespace molly::engine {

// A thread that reads adapters' files, one after another in the order in which they were submitted.
class AdapterLoader {
 public:
  explicit AdapterLoader(AdapterReader reader);
  // Waits for the file that is being read; those not begun are not read.
  ~AdapterLoader();
  AdapterLoader(const AdapterLoader&) = delete;
  AdapterLoader& operator=(const AdapterLoader&) = delete;

  void submit(AdapterId id, std::filesystem::path file);

  struct Loaded {
    AdapterId id = 0;
    Result<AdapterImage> image;
    double milliseconds = 0;  // that reading took
  };
  // What ended since the last call.
  std::vector<Loaded> take_finished();
  // Called on the loader's thread after each load.
  void on_loaded(std::function<void()> wake);

 private:
  struct Job {
    AdapterId id = 0;
    std::filesystem::path file;
  };

  void run(const std::stop_token& stop);
  Loaded load(const Job& job) const;

  AdapterReader reader_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Job> jobs_;
  std::vector<Loaded> finished_;
  std::function<void()> wake_;
  std::jthread thread_;  // last: starts when the rest is there
};

}  // namespace molly::engine
