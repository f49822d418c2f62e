#include "store/database.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <future>
#include <thread>

namespace molly::store {
namespace {

struct Waiting {
  Writer::Job job;
  Writer::Completion completion;
};

Result<void> run_guarded(Connection& connection, Writer::Job& job) {
  try {
    return job(connection);
  } catch (const std::exception& bug) {
    return failure(ErrorCode::internal, std::string("a write to the database ended by an exception: ") + bug.what());
  }
}

// Runs one job inside the open transaction, and undoes it alone where it fails. The outer result is the transaction's.
Result<Result<void>> run_inside(Connection& connection, Writer::Job& job) {
  if (auto marked = connection.execute_script("SAVEPOINT job"); !marked) return std::unexpected(marked.error());
  auto outcome = run_guarded(connection, job);
  // A full disk ends the whole transaction, savepoints and all: this then fails too.
  const auto closed = connection.execute_script(outcome ? "RELEASE job" : "ROLLBACK TO job; RELEASE job");
  if (!closed) return std::unexpected(outcome ? closed.error() : outcome.error());
  return outcome;
}

// The outcome of each job after the commit.
std::vector<Result<void>> run_batch(Connection& connection, std::span<Waiting> batch) {
  std::vector<Result<void>> outcomes;
  Result<void> whole = connection.execute_script("BEGIN IMMEDIATE");
  for (Waiting& waiting : batch) {
    if (!whole) break;
    auto outcome = run_inside(connection, waiting.job);
    if (!outcome) {
      whole = std::unexpected(std::move(outcome.error()));
    } else {
      outcomes.push_back(std::move(*outcome));
    }
  }
  if (whole) whole = connection.execute_script("COMMIT");
  if (whole) return outcomes;
  (void)connection.execute_script("ROLLBACK");
  // A job that failed by itself keeps its own reason.
  outcomes.resize(batch.size(), whole);
  for (auto& outcome : outcomes) {
    if (outcome) outcome = whole;
  }
  return outcomes;
}

}  // namespace

struct Writer::State {
  explicit State(Connection opened) : connection(std::move(opened)) {}

  void run() {
    for (auto batch = take(); !batch.empty(); batch = take()) {
      auto outcomes = run_batch(connection, batch);
      for (std::size_t i = 0; i < batch.size(); ++i) batch[i].completion(std::move(outcomes[i]));
    }
  }

  // Waits for jobs; none: there will be no more.
  std::vector<Waiting> take() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return stopping || !queue.empty(); });
    // A bound on the batch bounds how long the first job waits for its commit.
    constexpr std::size_t most_at_once = 256;
    std::vector<Waiting> batch;
    while (!queue.empty() && batch.size() < most_at_once) {
      batch.push_back(std::move(queue.front()));
      queue.pop_front();
    }
    return batch;
  }

  Connection connection;  // the thread's own
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Waiting> queue;
  bool stopping = false;
  std::thread thread;
};

Writer::Writer(Connection connection) : state_(std::make_unique<State>(std::move(connection))) {
  state_->thread = std::thread([state = state_.get()] { state->run(); });
}

Writer::~Writer() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed.notify_one();
  state_->thread.join();
}

Result<void> Writer::submit(Job job, Completion completion) {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->queue.size() >= queue_limit) {
      return failure(ErrorCode::overloaded, "the database cannot follow: too many writes are waiting");
    }
    state_->queue.push_back({std::move(job), std::move(completion)});
  }
  state_->changed.notify_one();
  return {};
}

Result<void> Writer::write(Job job) {
  std::promise<Result<void>> promise;
  auto outcome = promise.get_future();
  auto accepted = submit(std::move(job), [&promise](Result<void> result) { promise.set_value(std::move(result)); });
  if (!accepted) return accepted;
  return outcome.get();
}

Result<Database> Database::open(const std::filesystem::path& file, std::span<const Schema> schemas) {
  auto connection = Connection::open(file, Connection::Mode::read_write);
  if (!connection) return std::unexpected(std::move(connection.error()));
  if (auto migrated = migrate(*connection, schemas); !migrated) return std::unexpected(std::move(migrated.error()));
  return Database(file, std::make_unique<Writer>(std::move(*connection)));
}

Result<Connection> Database::reader() const { return Connection::open(file_, Connection::Mode::read_only); }

}  // namespace molly::store
