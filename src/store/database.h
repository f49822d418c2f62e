#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>

#include "store/connection.h"
#include "store/migration.h"

namespace molly::store {

// The one thread of this process that writes. Jobs run in the order they came; those that wait together
// share one transaction and one sync to disk (group commit), and each is undone alone when it fails.
//
// Any thread may submit; that takes a short lock and never waits for the disk. A completion is called on the
// writer's thread once the job is on the disk (WAL, synchronous FULL) or has failed: it should only pass the
// news on. The destructor completes all jobs that were accepted.
class Writer {
 public:
  using Job = std::move_only_function<Result<void>(Connection&)>;
  using Completion = std::move_only_function<void(Result<void>)>;

  static constexpr std::size_t queue_limit = 4096;

  explicit Writer(Connection connection);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Fails (overloaded) when the queue is full; then neither job nor completion is ever called.
  Result<void> submit(Job job, Completion completion);

  // Submits and waits: for command lines and start-up, never on a network thread.
  Result<void> write(Job job);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// <data>/molly.db, migrated and ready: WAL, foreign keys, mode 0600.
class Database {
 public:
  // Blocks on the disk. The schemas are those of the whole program.
  static Result<Database> open(const std::filesystem::path& file, std::span<const Schema> schemas);

  Writer& writer() { return *writer_; }
  // A new connection for reading; one for each thread that reads.
  Result<Connection> reader() const;
  const std::filesystem::path& file() const { return file_; }

 private:
  Database(std::filesystem::path file, std::unique_ptr<Writer> writer)
      : file_(std::move(file)), writer_(std::move(writer)) {}
  std::filesystem::path file_;
  std::unique_ptr<Writer> writer_;
};

}  // namespace molly::store
