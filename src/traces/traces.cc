#include "traces/traces.h"

#include <condition_variable>
#include <thread>

#include "traces/encoding.h"
#include "traces/segment_writer.h"

namespace molly::traces {
namespace {

constexpr std::size_t pending_limit = 1 << 20;
constexpr std::size_t flush_at = 256 << 10;
constexpr std::chrono::milliseconds flush_interval(100);
constexpr std::size_t kept_catalogues = 8;

}  // namespace

Settings read_settings(config::Section section) {
  Settings out;
  constexpr config::Range<std::uint64_t> sensible{1ULL << 20, 1ULL << 50};
  out.max_bytes = section.bytes("max_bytes", sensible).value_or(out.max_bytes);
  return out;
}

struct Traces::State {
  explicit State(SegmentWriter opened) : segments(std::move(opened)) {}

  // Under `mutex`.
  void remember(const SharedCatalogue& catalogue) {
    // Nearly always the last one: the configuration in force.
    if (!catalogues.empty() && catalogues.back().id() == catalogue.id()) return;
    if (std::ranges::find(catalogues, catalogue.id(), &SharedCatalogue::id) == catalogues.end()) {
      catalogues.push_back(catalogue);
    }
  }

  void add(const DecisionRecord& record) {
    thread_local RecordEncoder encoder;
    const std::string_view payload = encoder.encode(record);
    const auto length = static_cast<std::uint32_t>(payload.size());
    bool wake = false;
    {
      const std::lock_guard lock(mutex);
      if (pending.size() + frame_head_size + length > pending_limit) {
        ++lost;
        return;
      }
      ++recorded;
      remember(record.catalogue);
      const std::size_t before = pending.size();
      char head[frame_head_size] = {};  // the checksum is the writing thread's work
      std::memcpy(head, &length, sizeof length);
      pending.append(head, sizeof head);
      pending += payload;
      wake = before == 0 || (before < flush_at && pending.size() >= flush_at);
    }
    if (wake) changed.notify_one();
  }

  void run() {
    std::unique_lock lock(mutex);
    while (!stopping) {
      changed.wait(lock, [&] { return stopping || !pending.empty(); });
      changed.wait_for(lock, flush_interval, [&] { return stopping || pending.size() >= flush_at; });
      lock.unlock();
      (void)flush();  // told again by the next flush() that somebody asks for
      lock.lock();
    }
  }

  Result<void> flush() {
    const std::lock_guard writing(disk_mutex);
    std::vector<SharedCatalogue> needed;
    {
      const std::lock_guard lock(mutex);
      std::swap(pending, frames);
      needed = catalogues;
      if (catalogues.size() > kept_catalogues) catalogues.erase(catalogues.begin(), catalogues.end() - kept_catalogues);
      segments.bound(settings.max_bytes);
    }
    if (frames.empty()) return last_write;
    last_write = segments.write(frames, needed);
    frames.clear();
    const std::lock_guard lock(mutex);
    lost += segments.given_up();
    return last_write;
  }

  std::mutex disk_mutex;  // taken before `mutex`
  SegmentWriter segments;
  std::string frames;  // what is being written
  Result<void> last_write;

  std::mutex mutex;
  std::condition_variable changed;
  std::string pending;
  std::vector<SharedCatalogue> catalogues;  // of the records that wait, and a few more
  Settings settings;
  std::uint64_t recorded = 0;
  std::uint64_t lost = 0;
  bool stopping = false;
  std::thread thread;
  std::filesystem::path folder;
};

Traces::Traces(std::unique_ptr<State> state) : state_(std::move(state)) {
  state_->thread = std::thread([kept = state_.get()] { kept->run(); });
}

Traces::~Traces() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed.notify_one();
  state_->thread.join();
  (void)state_->flush();
}

Result<std::unique_ptr<Traces>> Traces::open(std::filesystem::path folder, Settings settings) {
  auto segments = SegmentWriter::open(folder, settings.max_bytes);
  if (!segments) return std::unexpected(std::move(segments.error()));
  auto state = std::make_unique<State>(std::move(*segments));
  state->settings = settings;
  state->folder = std::move(folder);
  return std::unique_ptr<Traces>(new Traces(std::move(state)));
}

void Traces::record(const DecisionRecord& record) { state_->add(record); }

Result<std::optional<DecisionRecord>> Traces::find(const TraceId& id) {
  (void)flush();  // what could not be written cannot be found, and flush() tells who asks for it
  return find_in(state_->folder, id);
}

Result<std::vector<DecisionRecord>> Traces::recent(std::size_t count) {
  (void)flush();
  return recent_in(state_->folder, count);
}

Result<void> Traces::flush() { return state_->flush(); }

void Traces::apply(Settings settings) {
  const std::lock_guard lock(state_->mutex);
  state_->settings = settings;
}

std::uint64_t Traces::recorded() const {
  const std::lock_guard lock(state_->mutex);
  return state_->recorded;
}

std::uint64_t Traces::lost() const {
  const std::lock_guard lock(state_->mutex);
  return state_->lost;
}

}  // namespace molly::traces
