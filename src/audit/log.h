#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "audit/record.h"
#include "core/error.h"
#include "core/ids.h"

namespace molly::audit {

// How far a record had got when its receipt was made.
enum class Durability : std::uint8_t {
  unrecorded,  // the log is failing; only local service may go on, and the log will say how often it did
  kernel,      // handed to the kernel: survives a crash of this program, not of the machine
  synced,      // on disk
};

// Proof that a record was written; made only by Log. Move-only: one record justifies one act.
class Receipt {
 public:
  Receipt(Receipt&&) noexcept = default;
  Receipt& operator=(Receipt&&) noexcept = default;
  Receipt(const Receipt&) = delete;
  Receipt& operator=(const Receipt&) = delete;

  Durability durability() const { return durability_; }
  std::uint64_t sequence() const { return sequence_; }  // 0 when unrecorded
  Kind kind() const { return kind_; }
  const std::optional<TraceId>& trace() const { return trace_; }
  const std::string& target() const { return target_; }
  const Digest& payload() const { return payload_; }

 private:
  friend class Log;
  Receipt(Durability durability, std::uint64_t sequence, const Record& record);

  Durability durability_;
  Kind kind_;
  std::uint64_t sequence_;
  std::optional<TraceId> trace_;
  std::string target_;
  Digest payload_;
};

// For tests of disk failures: asked before each system call on the log's files.
struct Fault {
  int error = 0;                // an errno value; 0: no fault
  std::size_t after_bytes = 0;  // a write gets this far first
};
enum class DiskCall : std::uint8_t { write, sync };

struct LogOptions {
  std::uint64_t segment_bytes = 64u << 20;         // a new file is begun once one is this long
  std::chrono::milliseconds sync_within{50};       // kernel-durable records reach the disk within this
  std::chrono::milliseconds retry_after{250};      // how often a failed disk is tried again
  std::function<Fault(DiskCall)> fault = nullptr;  // tests only
};

// The append-only log in one folder (mode 0700, files 0600), of which this object holds the exclusive lock.
// Records are chained by SHA-256 across segment files. Thread-safe. One thread of its own syncs to disk.
class Log {
 public:
  // Opens or creates the log. An incomplete last record (kill -9 within a write, power cut) is cut off and
  // the cut recorded; any other damage is an error, as is a lock held by somebody else. Blocks on disk.
  static Result<std::unique_ptr<Log>> open(const std::filesystem::path& folder, LogOptions options = {});
  // A log that could not be opened, so that local service can go on: every append fails with `reason`.
  static std::unique_ptr<Log> unavailable(Error reason);
  ~Log();  // records `closed`, syncs, and fails callbacks that cannot be served
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // Hands the record to the kernel before it returns: one write(), some microseconds. io_failed when the
  // disk does not take it; the log then refuses everything until its own thread got the disk to work again.
  Result<Receipt> append(const Record& record);

  // As append, then calls `done` once the record is on disk, from the log's own thread (or at once, from
  // this one, when the append already fails). Many callers share one sync. `done` must not block.
  using Done = std::move_only_function<void(Result<Receipt>)>;
  void append_synced(const Record& record, Done done);

  // A receipt for service on this device and the local network while the log is failing: counted, and
  // written into the log as a `gap` when the disk works again. An error while the log works.
  Result<Receipt> unrecorded(const Record& record);

  struct Status {
    bool failing = false;
    std::string reason;            // why, when failing
    std::uint64_t records = 0;     // sequence of the last record
    std::uint64_t synced = 0;      // sequence of the last record known to be on disk
    std::uint64_t syncs = 0;       // how often the disk was asked to sync since the start
    std::uint64_t unrecorded = 0;  // local requests served without a record since the start
  };
  Status status() const;

 private:
  struct State;
  explicit Log(std::unique_ptr<State> state);
  static Receipt receipt(Durability durability, std::uint64_t sequence, const Record& record);
  std::unique_ptr<State> state_;
};

}  // namespace molly::audit
