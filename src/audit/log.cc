#include "audit/log.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "audit/encoding.h"
#include "audit/segment.h"
#include "audit/segment_writer.h"
#include "base/os/file.h"

namespace molly::audit {
namespace {

using Clock = std::chrono::steady_clock;

// Bytes that may wait for a disk that does not keep up before appends are refused.
constexpr std::size_t max_unsynced_bytes = 32u << 20;
constexpr std::size_t keep_buffer_bytes = 1u << 20;

struct Waiter {
  Receipt receipt;
  Log::Done done;
};

}  // namespace

// One mutex guards everything but the disk's slow calls, which only the thread makes: while it syncs, others
// append behind what it syncs; while it repairs, `failing` keeps them away from the files.
struct Log::State {
  State(LogOptions chosen, std::optional<base::FileLock> held, std::optional<SegmentWriter> open_writer)
      : options(std::move(chosen)), lock_file(std::move(held)), writer(std::move(open_writer)) {}

  Result<std::uint64_t> append(const Record& record);
  void fail(Error reason);
  void run();
  void sync_once(std::unique_lock<std::mutex>& lock);
  void recover(std::unique_lock<std::mutex>& lock);
  void refuse_waiters(std::unique_lock<std::mutex>& lock);
  void rotate_when_long();
  bool must_sync_now() const;

  const LogOptions options;
  std::optional<base::FileLock> lock_file;
  std::optional<SegmentWriter> writer;  // none: unavailable for good

  mutable std::mutex mutex;
  std::condition_variable wake;
  bool stopping = false;
  std::optional<Error> failing;
  std::uint64_t sequence = 0;
  std::uint64_t synced_sequence = 0;
  Digest head{};
  std::string frame;     // the record being written; kept for its memory
  std::string unsynced;  // what was written since the last sync, to write again should that sync fail
  Clock::time_point dirty_since;
  std::vector<Waiter> waiters;
  std::uint64_t syncs = 0;
  std::uint64_t unrecorded = 0;
  std::uint64_t unrecorded_since_failure = 0;
  std::thread thread;
};

Receipt::Receipt(Durability durability, std::uint64_t sequence, const Record& record)
    : durability_(durability),
      kind_(record.kind),
      sequence_(sequence),
      trace_(record.trace),
      target_(record.target),
      payload_(record.payload) {}

Receipt Log::receipt(Durability durability, std::uint64_t sequence, const Record& record) {
  return Receipt(durability, sequence, record);
}

// Called with the mutex held. One write() when all is well.
Result<std::uint64_t> Log::State::append(const Record& record) {
  if (failing) return std::unexpected(*failing);
  if (!is_encodable(record)) return failure(ErrorCode::internal, "A text of an audit record is too long.");
  if (unsynced.size() > max_unsynced_bytes)
    return failure(ErrorCode::io_failed, "The disk does not keep up with the audit log.");
  frame.clear();
  const Digest hash = frame_to(frame, head, sequence + 1, std::chrono::system_clock::now(), record);
  if (auto written = writer->append(frame); !written) {
    fail(written.error());
    return std::unexpected(std::move(written.error()));
  }
  if (unsynced.empty()) {
    dirty_since = Clock::now();
    wake.notify_one();
  }
  unsynced += frame;
  head = hash;
  return ++sequence;
}

void Log::State::fail(Error reason) {
  failing = std::move(reason);
  unrecorded_since_failure = 0;
  wake.notify_one();
}

bool Log::State::must_sync_now() const {
  return !waiters.empty() || (!unsynced.empty() && (stopping || Clock::now() >= dirty_since + options.sync_within));
}

void Log::State::run() {
  std::unique_lock lock(mutex);
  while (true) {
    if (failing) {
      refuse_waiters(lock);
      if (stopping) return;
      wake.wait_for(lock, options.retry_after, [this] { return stopping || !waiters.empty(); });
      if (!stopping && waiters.empty()) recover(lock);
    } else if (must_sync_now()) {
      sync_once(lock);
    } else if (stopping) {
      return;
    } else if (unsynced.empty()) {
      wake.wait(lock);
    } else {
      wake.wait_until(lock, dirty_since + options.sync_within);
    }
  }
}

void Log::State::sync_once(std::unique_lock<std::mutex>& lock) {
  std::vector<Waiter> served = std::exchange(waiters, {});
  const std::size_t bytes = unsynced.size();
  const std::uint64_t last = sequence;
  const Clock::time_point started = Clock::now();
  lock.unlock();
  auto synced = writer->sync();
  lock.lock();
  if (!synced) {
    fail(std::move(synced.error()));
    std::ranges::move(waiters, std::back_inserter(served));
    waiters = std::move(served);
    return;
  }
  ++syncs;
  synced_sequence = last;
  unsynced.erase(0, bytes);
  if (unsynced.empty() && unsynced.capacity() > keep_buffer_bytes) unsynced.shrink_to_fit();
  dirty_since = started;
  rotate_when_long();
  lock.unlock();
  for (Waiter& waiter : served) {
    waiter.receipt.durability_ = Durability::synced;
    waiter.done(std::move(waiter.receipt));
  }
  lock.lock();
}

void Log::State::refuse_waiters(std::unique_lock<std::mutex>& lock) {
  while (!waiters.empty()) {
    std::vector<Waiter> refused = std::exchange(waiters, {});
    const Error reason = *failing;
    lock.unlock();
    for (Waiter& waiter : refused) waiter.done(std::unexpected(reason));
    lock.lock();
  }
}

// After a failed sync the kernel may count pages as clean that never reached the disk, so everything since
// the last good sync is written again.
void Log::State::recover(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  auto repaired = writer->rewrite_tail(unsynced);
  lock.lock();
  if (!repaired) {
    failing = std::move(repaired.error());
    return;
  }
  failing.reset();
  ++syncs;
  synced_sequence = sequence;
  unsynced.clear();
  Record gap{.kind = Kind::gap};
  gap.counts.bytes_in = unrecorded_since_failure;
  if (append(gap)) unrecorded_since_failure = 0;
}

// A segment that cannot be begun is no reason to stop: the old one just grows, and a full disk shows at once.
void Log::State::rotate_when_long() {
  if (writer->size() < options.segment_bytes) return;
  if (!unsynced.empty()) {
    if (!writer->sync()) return;
    synced_sequence = sequence;
    unsynced.clear();
  }
  if (auto next = writer->begin_next(sequence + 1, head)) writer = std::move(*next);
}

Log::Log(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Log>> Log::open(const std::filesystem::path& folder, LogOptions options) {
  if (auto made = base::make_private_folder(folder); !made) return std::unexpected(std::move(made.error()));
  auto lock = base::FileLock::acquire(folder / "lock");
  if (!lock) return std::unexpected(std::move(lock.error()));
  auto end = SegmentWriter::open_end(folder, options.fault);
  if (!end) return std::unexpected(std::move(end.error()));

  auto state = std::make_unique<State>(std::move(options), std::move(*lock), std::move(end->writer));
  state->sequence = state->synced_sequence = end->sequence;
  state->head = end->head;
  Record opened{.kind = Kind::opened, .outcome = std::move(end->outcome)};
  opened.counts.bytes_in = end->dropped_bytes;
  if (auto appended = state->append(opened); !appended) return std::unexpected(std::move(appended.error()));
  if (auto synced = state->writer->sync(); !synced) return std::unexpected(std::move(synced.error()));
  state->synced_sequence = state->sequence;
  state->unsynced.clear();
  state->thread = std::thread([raw = state.get()] { raw->run(); });
  return std::unique_ptr<Log>(new Log(std::move(state)));
}

std::unique_ptr<Log> Log::unavailable(Error reason) {
  auto state = std::make_unique<State>(LogOptions{}, std::nullopt, std::nullopt);
  state->failing = std::move(reason);
  return std::unique_ptr<Log>(new Log(std::move(state)));
}

Log::~Log() {
  {
    const std::scoped_lock lock(state_->mutex);
    (void)state_->append(Record{.kind = Kind::closed});  // failing: the next opening will say "unclean"
    state_->stopping = true;
    state_->wake.notify_one();
  }
  if (state_->thread.joinable()) state_->thread.join();
}

Result<Receipt> Log::append(const Record& record) {
  const std::scoped_lock lock(state_->mutex);
  const auto sequence = state_->append(record);
  if (!sequence) return std::unexpected(sequence.error());
  return receipt(Durability::kernel, *sequence, record);
}

void Log::append_synced(const Record& record, Done done) {
  std::unique_lock lock(state_->mutex);
  const auto sequence = state_->append(record);
  if (sequence) {
    state_->waiters.push_back({receipt(Durability::kernel, *sequence, record), std::move(done)});
    state_->wake.notify_one();
    return;
  }
  lock.unlock();
  done(std::unexpected(sequence.error()));
}

Result<Receipt> Log::unrecorded(const Record& record) {
  const std::scoped_lock lock(state_->mutex);
  if (!state_->failing) return failure(ErrorCode::conflict, "The audit log works: append the record to it.");
  if (!record.tier || *record.tier > Tier::t1)
    return failure(ErrorCode::forbidden, "Only T0 and T1 are served while the audit log is failing.");
  ++state_->unrecorded;
  ++state_->unrecorded_since_failure;
  return receipt(Durability::unrecorded, 0, record);
}

Log::Status Log::status() const {
  const std::scoped_lock lock(state_->mutex);
  Status status;
  status.failing = state_->failing.has_value();
  if (state_->failing) status.reason = state_->failing->message;
  status.records = state_->sequence;
  status.synced = state_->synced_sequence;
  status.syncs = state_->syncs;
  status.unrecorded = state_->unrecorded;
  return status;
}

}  // namespace molly::audit
