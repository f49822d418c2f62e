#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/memory/adapter_cache.h"

namespace molly::engine {

using namespace std::chrono_literals;

inline constexpr std::size_t cache_page_bytes = 256;

// An adapter of rank 1 that fills so many pages, with its own byte everywhere.
inline AdapterImage image_of(std::uint32_t pages, std::byte content) {
  AdapterImage image{
      .page_bytes = cache_page_bytes, .pages = pages, .parts = {{.rank = 1}}, .rows = {{}, {}}, .bytes = {}};
  image.rows[1].page = pages - 1;
  image.rows[1].offset = 128;
  image.bytes.assign(pages * cache_page_bytes, content);
  return image;
}

// Stands in for disk and converter: files are names that tests give a content.
class FakeFiles {
 public:
  void put(const std::string& file, Result<AdapterImage> image) {
    const std::scoped_lock lock(mutex_);
    files_.insert_or_assign(file, std::move(image));
  }
  void hold() { held_ = true; }
  void let_go() {
    held_ = false;
    held_.notify_all();
  }
  int reads() const { return reads_; }

  Result<AdapterImage> read(const std::filesystem::path& file) {
    ++reads_;
    held_.wait(true);
    const std::scoped_lock lock(mutex_);
    return files_.at(file.string());
  }

 private:
  std::mutex mutex_;
  std::map<std::string, Result<AdapterImage>> files_;
  std::atomic<bool> held_ = false;
  std::atomic<int> reads_ = 0;
};

class AdapterCacheTest : public testing::Test {
 protected:
  ~AdapterCacheTest() override { files.let_go(); }

  AdapterId add(const std::string& name, std::uint32_t pages = 2) {
    files.put(name, image_of(pages, static_cast<std::byte>(name[0])));
    return *cache().add(name, name, "1");
  }

  AdapterCache& cache() {
    if (!cache_) {
      cache_.emplace(
          pool,
          PageMemory{[this](PageId page) { return memory.data() + static_cast<std::size_t>(page) * cache_page_bytes; }},
          [this](const std::filesystem::path& file) { return files.read(file); }, options);
      cache_->on_loaded([this] {
        const std::scoped_lock lock(mutex);
        ++loaded;
        changed.notify_all();
      });
    }
    return *cache_;
  }

  void wait_for_loads(int count) {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, 20s, [&] { return loaded >= count; }));
    loaded -= count;
    lock.unlock();
    EXPECT_TRUE(cache().poll(now));
  }

  Result<std::optional<const ResidentAdapter*>> acquire(AdapterId id) { return cache().acquire(id, now, make_room); }

  // Loads it if need be.
  void make_hot(AdapterId id) {
    if (const auto first = acquire(id); first && *first) return;
    wait_for_loads(1);
    const auto second = acquire(id);
    ASSERT_TRUE(second) << second.error().message;
    ASSERT_TRUE(*second);
  }
  void use(AdapterId id) {
    make_hot(id);
    cache().release(id);
  }

  AdapterStatus status(AdapterId id) {
    for (const auto& status : cache().status()) {
      if (status.id == id) return status;
    }
    return {};
  }
  AdapterState state(AdapterId id) { return status(id).state; }

  FakeFiles files;
  AdapterCacheOptions options{.warm_bytes = 64 * cache_page_bytes, .layers = 1};
  PagePool pool{6};
  std::vector<std::byte> memory = std::vector<std::byte>(6 * cache_page_bytes);
  AdapterCache::Clock::time_point now{1h};
  std::function<bool(std::uint32_t)> make_room = [](std::uint32_t) { return false; };
  std::mutex mutex;
  std::condition_variable changed;
  int loaded = 0;
  std::optional<AdapterCache> cache_;
};

}  // namespace molly::engine
