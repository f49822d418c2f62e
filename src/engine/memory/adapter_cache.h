#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "engine/adapters/image.h"
#include "engine/memory/eviction.h"
#include "engine/memory/page_pool.h"

namespace molly::engine {

using AdapterId = std::uint32_t;  // of this process; never used again for another adapter

enum class AdapterState : std::uint8_t { cold, loading, warm, hot, failed };
std::string_view to_string(AdapterState state);

struct AdapterStatus {
  AdapterId id = 0;
  std::string name;
  std::string version;  // hash of the file's content, part of the prefix key
  AdapterState state = AdapterState::cold;
  std::string reason;  // failed: why
  std::uint32_t rank = 0;
  std::uint64_t bytes = 0;
  std::uint32_t pages = 0;
  std::uint32_t users = 0;  // sequences that hold it
  std::uint64_t uses = 0;
};

// Reads and converts an adapter's file; runs on the loader's thread.
using AdapterReader = std::function<Result<AdapterImage>(const std::filesystem::path&)>;

// Gives the addresses of pool pages, 64-byte aligned: what the executor offers.
struct PageMemory {
  std::function<std::byte*(PageId)> address;
};

struct AdapterCacheOptions {
  std::uint64_t warm_bytes = 512ULL << 20;  // of images in host memory; those that sequences wait for may exceed it
  std::uint32_t layers = 0;
};

struct AdapterCacheCounters {
  std::uint64_t hits = 0;        // acquired while hot
  std::uint64_t promotions = 0;  // warm to hot
  std::uint64_t loads = 0;       // cold to warm
  std::uint64_t evictions = 0;   // hot to warm
};

// Registered adapters and where they are: hot (in the pool), warm (in host memory), cold (a file). Used by the engine's
// thread, but for the loader thread inside, which only reads files.
class AdapterCache {
 public:
  using Clock = std::chrono::steady_clock;

  AdapterCache(PagePool& pool, PageMemory memory, AdapterReader reader, AdapterCacheOptions options);
  ~AdapterCache();
  AdapterCache(const AdapterCache&) = delete;
  AdapterCache& operator=(const AdapterCache&) = delete;

  // Known from now on, cold. Names are 1 to 200 bytes of UTF-8: else invalid_request. conflict when the name is taken.
  Result<AdapterId> add(std::string name, std::filesystem::path file, std::string version);
  // Not found from now on; its memory is freed when its last user is done.
  Result<void> remove(std::string_view name);
  std::optional<AdapterId> find(std::string_view name) const;

  // Wanted by a sequence that waits: starts what is needed to make it hot. Pages are taken from colder adapters; when
  // they do not suffice, `make_room(pages)` may free others (cached prefixes) and returns whether it did.
  // hot: users + 1, and the adapter stays until release(). Not yet: nothing, ask again after on_progress.
  // Errors: not_found, invalid_request (the file does not fit), io_failed, overloaded (larger than the whole pool). A
  // failed load's error comes again for five seconds; then the file is read anew.
  Result<std::optional<const ResidentAdapter*>> acquire(AdapterId id, Clock::time_point now,
                                                        const std::function<bool(std::uint32_t pages)>& make_room);
  void release(AdapterId id);
  // A hint that it will be wanted: reads it into host memory when there is room.
  void prefetch(AdapterId id);

  // The hot adapter without users that is cheapest to lose, in the measure of keep_score(); evict it with
  // evict_cheapest().
  struct Candidate {
    double score = 0;
    std::uint32_t pages = 0;
  };
  std::optional<Candidate> cheapest(Clock::time_point now) const;
  std::uint32_t evict_cheapest(Clock::time_point now);  // pages that became free

  // Takes over what the loader finished; true when something changed state.
  bool poll(Clock::time_point now);
  // Called on the loader's thread when a load ended, to wake the engine's thread.
  void on_loaded(std::function<void()> wake);

  std::vector<AdapterStatus> status() const;
  AdapterCacheCounters counters() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace molly::engine
