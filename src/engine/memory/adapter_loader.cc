#include "engine/memory/adapter_loader.h"

#include <chrono>
#include <exception>
#include <utility>

namespace molly::engine {

AdapterLoader::AdapterLoader(AdapterReader reader)
    : reader_(std::move(reader)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

AdapterLoader::~AdapterLoader() = default;

void AdapterLoader::submit(AdapterId id, std::filesystem::path file) {
  {
    const std::scoped_lock lock(mutex_);
    jobs_.push_back({.id = id, .file = std::move(file)});
  }
  changed_.notify_one();
}

std::vector<AdapterLoader::Loaded> AdapterLoader::take_finished() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(finished_, {});
}

void AdapterLoader::on_loaded(std::function<void()> wake) {
  const std::scoped_lock lock(mutex_);
  wake_ = std::move(wake);
}

void AdapterLoader::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [&] { return !jobs_.empty(); }) && !stop.stop_requested()) {
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    Loaded loaded = load(job);
    lock.lock();
    finished_.push_back(std::move(loaded));
    const auto wake = wake_;
    lock.unlock();
    if (wake) wake();
    lock.lock();
  }
}

AdapterLoader::Loaded AdapterLoader::load(const Job& job) const {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto read = [&]() -> Result<AdapterImage> {
    try {
      return reader_(job.file);
    } catch (const std::bad_alloc&) {
      return failure(ErrorCode::overloaded, "not enough memory to read " + job.file.string());
    } catch (const std::exception& exception) {
      return failure(ErrorCode::internal, "reading " + job.file.string() + " failed: " + exception.what());
    }
  };
  auto image = read();
  const std::chrono::duration<double, std::milli> taken = Clock::now() - start;
  return {.id = job.id, .image = std::move(image), .milliseconds = taken.count()};
}

}  // namespace molly::engine
