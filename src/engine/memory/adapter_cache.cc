#include "engine/memory/adapter_cache.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <deque>
#include <map>
#include <ranges>

#include "engine/memory/adapter_loader.h"
#include "engine/memory/adapter_record.h"
#include "engine/memory/residency_policy.h"
#include "engine/text/utf8.h"

namespace molly::engine {
namespace {

using Clock = AdapterCache::Clock;
using MakeRoom = std::function<bool(std::uint32_t pages)>;

constexpr std::size_t max_name_bytes = 200;
constexpr std::uint32_t max_in_flight = 8;  // so that what is wanted most is not behind a long queue
constexpr std::chrono::seconds retry_after{5};
// A sequence that waits asks again well within this, or it has gone.
constexpr std::chrono::seconds wanted_for{5};
// First guesses, from an adapter of 14 MB: 3 ms to copy, 10 ms to read.
constexpr double copy_milliseconds_per_mebibyte = 0.2;
constexpr double read_milliseconds_per_mebibyte = 0.7;

Result<void> check_name(std::string_view name) {
  const auto is_control = [](char letter) { return static_cast<unsigned char>(letter) < ' ' || letter == '\x7f'; };
  if (!name.empty() && name.size() <= max_name_bytes && is_utf8(name) && std::ranges::none_of(name, is_control)) {
    return {};
  }
  return failure(ErrorCode::invalid_request, "an adapter's name is 1 to 200 bytes of UTF-8 without control characters",
                 "name");
}

std::unexpected<Error> no_such_adapter() { return failure(ErrorCode::not_found, "there is no such adapter"); }

}  // namespace

std::string_view to_string(AdapterState state) {
  switch (state) {
    case AdapterState::cold: return "cold";
    case AdapterState::loading: return "loading";
    case AdapterState::warm: return "warm";
    case AdapterState::hot: return "hot";
    case AdapterState::failed: return "failed";
  }
  return "";
}

bool AdapterRecord::is_wanted(Clock::time_point now) const { return wanted && now - *wanted < wanted_for; }

struct AdapterCache::State {
  PagePool& pool;
  PageMemory memory;
  AdapterCacheOptions options;
  AdapterLoader loader;
  std::map<AdapterId, AdapterRecord> records{};
  std::map<std::string, AdapterId, std::less<>> by_name{};
  AdapterId next_id = 1;
  std::deque<AdapterId> to_load{};      // wanted by sequences, in order
  std::deque<AdapterId> to_prefetch{};  // only when nothing is wanted
  std::uint32_t in_flight = 0;
  std::uint64_t largest_image = 0;
  std::uint64_t image_uses = 0;
  ResidencyPolicy policy{};
  MeasuredCost copying{copy_milliseconds_per_mebibyte};
  MeasuredCost reading{read_milliseconds_per_mebibyte};
  AdapterCacheCounters counters{};

  AdapterRecord* find(AdapterId id);
  void want(AdapterRecord& record, Clock::time_point now);
  void start_loads(Clock::time_point now);
  void start_prefetch();
  bool may_load(Clock::time_point now) const;
  void submit(std::deque<AdapterId>& from);
  void take(AdapterLoader::Loaded& loaded, Clock::time_point now);
  void touch_image(AdapterRecord& record) { record.image_used = ++image_uses; }
  std::uint64_t image_bytes() const;
  void drop_images(Clock::time_point now);
  Result<bool> promote(AdapterRecord& record, Clock::time_point now, const MakeRoom& make_room);
  bool free_pages(std::uint32_t count, Clock::time_point now, const MakeRoom& make_room);
  void copy_to_pool(AdapterRecord& record);
  const ResidentAdapter* use(AdapterRecord& record, Clock::time_point now);
  std::vector<ResidencyPolicy::Resident> idle() const;
  std::uint32_t evict(AdapterRecord& record);
  void erase(AdapterRecord& record);
};

AdapterRecord* AdapterCache::State::find(AdapterId id) {
  const auto found = records.find(id);
  return found == records.end() || found->second.removed ? nullptr : &found->second;
}

void AdapterCache::State::want(AdapterRecord& record, Clock::time_point now) {
  record.wanted = now;
  const bool prefetching = std::erase(to_prefetch, record.status.id) > 0;
  if (record.state() == AdapterState::cold || prefetching) {
    record.state() = AdapterState::loading;
    to_load.push_back(record.status.id);
  }
  start_loads(now);
}

void AdapterCache::State::start_loads(Clock::time_point now) {
  while (!to_load.empty() && may_load(now)) submit(to_load);
  start_prefetch();
}

void AdapterCache::State::start_prefetch() {
  if (to_load.empty() && in_flight == 0 && !to_prefetch.empty()) submit(to_prefetch);
}

// What is wanted stays in host memory until it is in the pool, so no more is begun than fits there.
bool AdapterCache::State::may_load(Clock::time_point now) const {
  std::uint64_t bytes = in_flight * largest_image;
  for (const auto& record : std::views::values(records)) {
    if (record.image && !record.is_hot() && record.is_wanted(now)) bytes += record.image->bytes.size();
  }
  return in_flight < max_in_flight && (bytes == 0 || bytes + largest_image <= options.warm_bytes);
}

void AdapterCache::State::submit(std::deque<AdapterId>& from) {
  const AdapterId id = from.front();
  from.pop_front();
  loader.submit(id, records.at(id).file);
  ++in_flight;
}

void AdapterCache::State::take(AdapterLoader::Loaded& loaded, Clock::time_point now) {
  --in_flight;
  AdapterRecord* record = find(loaded.id);
  if (record == nullptr) return;
  if (!loaded.image) {
    record->state() = AdapterState::failed;
    record->status.reason = loaded.image.error().message;
    record->error = std::move(loaded.image.error());
    record->failed = now;
    return;
  }
  record->state() = AdapterState::warm;
  record->image = *std::move(loaded.image);
  record->status.rank = record->image->max_rank();
  record->status.bytes = record->image->bytes.size();
  record->status.pages = record->image->pages;
  largest_image = std::max(largest_image, record->status.bytes);
  reading.note(record->status.bytes, loaded.milliseconds);
  touch_image(*record);
  ++counters.loads;
}

std::uint64_t AdapterCache::State::image_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& record : std::views::values(records)) bytes += record.image ? record.image->bytes.size() : 0;
  return bytes;
}

void AdapterCache::State::drop_images(Clock::time_point now) {
  for (std::uint64_t bytes = image_bytes(); bytes > options.warm_bytes;) {
    AdapterRecord* oldest = nullptr;
    for (auto& record : std::views::values(records)) {
      const bool may_go = record.image && (record.is_hot() || !record.is_wanted(now));
      if (may_go && (oldest == nullptr || record.image_used < oldest->image_used)) oldest = &record;
    }
    if (oldest == nullptr) return;
    bytes -= oldest->image->bytes.size();
    oldest->image.reset();
    if (!oldest->is_hot()) oldest->state() = AdapterState::cold;
  }
}

// False: not now.
Result<bool> AdapterCache::State::promote(AdapterRecord& record, Clock::time_point now, const MakeRoom& make_room) {
  const std::uint32_t count = record.image->pages;
  if (count > pool.size()) {
    return failure(ErrorCode::overloaded, "the adapter takes " + std::to_string(count) + " pages, the whole pool has " +
                                              std::to_string(pool.size()));
  }
  if (!free_pages(count, now, make_room)) return false;
  record.pages = *pool.allocate(count, PageUse::adapter);
  copy_to_pool(record);
  record.state() = AdapterState::hot;
  record.wanted.reset();
  touch_image(record);
  ++counters.promotions;
  drop_images(now);
  return true;
}

// Nothing is evicted in vain: only when it will suffice.
bool AdapterCache::State::free_pages(std::uint32_t count, Clock::time_point now, const MakeRoom& make_room) {
  const auto within_reach = [&] {
    std::uint32_t pages = pool.free();
    for (const auto& resident : idle()) pages += resident.pages;
    return pages;
  };
  const std::uint32_t pages = within_reach();
  if (pages < count && !(make_room && make_room(count - pages))) return false;
  if (within_reach() < count) return false;
  while (pool.free() < count) {
    const auto among = idle();
    if (among.empty()) return false;
    evict(records.at(among[policy.pick_victim(among, now)].id));
  }
  return true;
}

void AdapterCache::State::copy_to_pool(AdapterRecord& record) {
  const auto start = Clock::now();
  std::vector<std::byte*> addresses;
  for (std::uint32_t i = 0; i < record.image->pages; ++i) {
    addresses.push_back(memory.address(record.pages[i]));
    const auto page = record.image->page(i);
    std::memcpy(addresses.back(), page.data(), page.size());
  }
  record.resident = std::make_unique<ResidentAdapter>(*record.image, options.layers, addresses);
  const std::chrono::duration<double, std::milli> taken = Clock::now() - start;
  copying.note(record.status.bytes, taken.count());
}

const ResidentAdapter* AdapterCache::State::use(AdapterRecord& record, Clock::time_point now) {
  ++record.status.users;
  ++record.status.uses;
  const auto hot = std::ranges::count_if(std::views::values(records), &AdapterRecord::is_hot);
  policy.on_use(record.status.id, static_cast<std::uint32_t>(hot), now);
  return record.resident.get();
}

std::vector<ResidencyPolicy::Resident> AdapterCache::State::idle() const {
  std::vector<ResidencyPolicy::Resident> idle;
  for (const auto& record : std::views::values(records)) {
    if (!record.is_idle(pool)) continue;
    const auto bytes = record.status.bytes;
    const double milliseconds = copying.milliseconds(bytes) + (record.image ? 0 : reading.milliseconds(bytes));
    idle.push_back({.id = record.status.id, .milliseconds_to_restore = milliseconds, .pages = record.status.pages});
  }
  return idle;
}

std::uint32_t AdapterCache::State::evict(AdapterRecord& record) {
  const std::uint32_t before = pool.free();
  pool.release(record.pages);
  record.pages.clear();
  record.resident.reset();
  record.state() = record.image ? AdapterState::warm : AdapterState::cold;
  touch_image(record);
  ++counters.evictions;
  return pool.free() - before;
}

void AdapterCache::State::erase(AdapterRecord& record) {
  const AdapterId id = record.status.id;
  pool.release(record.pages);
  policy.forget(id);
  std::erase(to_load, id);
  std::erase(to_prefetch, id);
  records.erase(id);
}

AdapterCache::AdapterCache(PagePool& pool, PageMemory memory, AdapterReader reader, AdapterCacheOptions options)
    : state_(new State{
          .pool = pool, .memory = std::move(memory), .options = options, .loader = AdapterLoader(std::move(reader))}) {}

AdapterCache::~AdapterCache() {
  for (auto& record : std::views::values(state_->records)) state_->pool.release(record.pages);
}

Result<AdapterId> AdapterCache::add(std::string name, std::filesystem::path file, std::string version) {
  if (auto good = check_name(name); !good) return std::unexpected(std::move(good.error()));
  const auto [place, is_new] = state_->by_name.try_emplace(name, state_->next_id);
  if (!is_new) return failure(ErrorCode::conflict, "there is an adapter named '" + name + "' already", "name");
  const AdapterId id = state_->next_id++;
  AdapterRecord& record = state_->records[id];
  record.status = {.id = id, .name = std::move(name), .version = std::move(version)};
  record.file = std::move(file);
  return id;
}

Result<void> AdapterCache::remove(std::string_view name) {
  const auto found = state_->by_name.find(name);
  if (found == state_->by_name.end()) return no_such_adapter();
  AdapterRecord& record = state_->records.at(found->second);
  state_->by_name.erase(found);
  record.removed = true;
  if (record.status.users == 0) state_->erase(record);
  return {};
}

std::optional<AdapterId> AdapterCache::find(std::string_view name) const {
  const auto found = state_->by_name.find(name);
  return found == state_->by_name.end() ? std::nullopt : std::optional(found->second);
}

Result<std::optional<const ResidentAdapter*>> AdapterCache::acquire(AdapterId id, Clock::time_point now,
                                                                    const MakeRoom& make_room) {
  AdapterRecord* record = state_->find(id);
  if (record == nullptr) return no_such_adapter();
  if (record->is_hot()) {
    ++state_->counters.hits;
    return state_->use(*record, now);
  }
  if (record->state() == AdapterState::failed) {
    if (now - record->failed < retry_after) return std::unexpected(*record->error);
    record->state() = AdapterState::cold;
    record->status.reason.clear();
  }
  state_->want(*record, now);
  if (record->state() != AdapterState::warm) return std::nullopt;
  const auto promoted = state_->promote(*record, now, make_room);
  if (!promoted) return std::unexpected(promoted.error());
  if (!*promoted) return std::nullopt;
  return state_->use(*record, now);
}

void AdapterCache::release(AdapterId id) {
  AdapterRecord& record = state_->records.at(id);
  assert(record.status.users > 0 && "released more often than acquired");
  --record.status.users;
  if (record.removed && record.status.users == 0) state_->erase(record);
}

void AdapterCache::prefetch(AdapterId id) {
  AdapterRecord* record = state_->find(id);
  if (record == nullptr || record->state() != AdapterState::cold) return;
  if (state_->image_bytes() + state_->largest_image > state_->options.warm_bytes) return;
  record->state() = AdapterState::loading;
  state_->to_prefetch.push_back(id);
  state_->start_prefetch();
}

std::optional<AdapterCache::Candidate> AdapterCache::cheapest(Clock::time_point now) const {
  const auto among = state_->idle();
  if (among.empty()) return std::nullopt;
  const auto& victim = among[state_->policy.pick_victim(among, now)];
  return Candidate{.score = state_->policy.score(victim, now), .pages = victim.pages};
}

std::uint32_t AdapterCache::evict_cheapest(Clock::time_point now) {
  const auto among = state_->idle();
  if (among.empty()) return 0;
  const auto freed = state_->evict(state_->records.at(among[state_->policy.pick_victim(among, now)].id));
  state_->drop_images(now);
  return freed;
}

bool AdapterCache::poll(Clock::time_point now) {
  auto finished = state_->loader.take_finished();
  for (auto& loaded : finished) state_->take(loaded, now);
  state_->drop_images(now);
  state_->start_loads(now);
  return !finished.empty();
}

void AdapterCache::on_loaded(std::function<void()> wake) { state_->loader.on_loaded(std::move(wake)); }

std::vector<AdapterStatus> AdapterCache::status() const {
  std::vector<AdapterStatus> all;
  for (const auto& record : std::views::values(state_->records)) {
    if (!record.removed) all.push_back(record.status);
  }
  return all;
}

AdapterCacheCounters AdapterCache::counters() const { return state_->counters; }

}  // namespace molly::engine
