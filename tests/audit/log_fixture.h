#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <vector>

#include "audit/log.h"
#include "audit/verify.h"

namespace molly::audit {

// A test with a folder of its own, removed afterwards.
class AuditTest : public ::testing::Test {
 protected:
  AuditTest() {
    // In memory where that exists: these tests sync hundreds of times.
    const std::filesystem::path shared_memory = "/dev/shm";
    const bool in_memory = std::filesystem::is_directory(shared_memory);
    std::string pattern =
        ((in_memory ? shared_memory : std::filesystem::temp_directory_path()) / "molly-audit-XXXXXX").string();
    home_ = ::mkdtemp(pattern.data());
    folder_ = home_ / "audit";
  }
  ~AuditTest() override { std::filesystem::remove_all(home_); }

  std::unique_ptr<Log> open(LogOptions options = {}) {
    auto log = Log::open(folder_, std::move(options));
    EXPECT_TRUE(log) << log.error().message;
    return log ? std::move(*log) : nullptr;
  }

  std::filesystem::path segment(int number) const { return folder_ / ("0000000" + std::to_string(number) + ".audit"); }

  Report verified() const {
    auto report = verify(folder_);
    EXPECT_TRUE(report);
    return report.value_or(Report{});
  }

  std::vector<Entry> entries() const {
    std::vector<Entry> all;
    auto reader = Reader::open(folder_);
    if (!reader) return all;
    for (auto entry = reader->next(); entry && *entry; entry = reader->next()) all.push_back(**entry);
    return all;
  }

  std::filesystem::path home_;
  std::filesystem::path folder_;
};

inline Record dispatch(std::string target = "office") {
  Record record{.kind = Kind::dispatch};
  record.trace = TraceId::from_bytes({1, 2, 3});
  record.key_id = "0a1b2c3d";
  record.label = "internal/trusted/*/*";
  record.target = std::move(target);
  record.tier = Tier::t1;
  record.payload.fill(7);
  record.outcome = "ok";
  record.counts = {1, 2, 3, 4};
  return record;
}

inline std::string read_all(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_all(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Collects results that come from the log's thread.
class Results {
 public:
  Log::Done receiver() {
    return [this](Result<Receipt> result) {
      const std::scoped_lock lock(mutex_);
      results_.push_back(std::move(result));
      arrived_.notify_all();
    };
  }

  std::vector<Result<Receipt>> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return results_.size() >= count; });
    return std::exchange(results_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<Result<Receipt>> results_;
};

}  // namespace molly::audit
