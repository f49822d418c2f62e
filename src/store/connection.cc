#include "store/connection.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "store/sqlite_error.h"

namespace molly::store {
namespace {

constexpr int busy_milliseconds = 5000;
constexpr std::size_t most_stored_statements = 64;

// SQLite gives its side files (-wal, -shm) the mode of the main one.
Result<void> make_owner_only(const std::filesystem::path& file) {
  const int number = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (number < 0) {
    return failure(ErrorCode::io_failed,
                   "the database " + file.string() + " cannot be opened: " + std::strerror(errno));
  }
  struct stat status{};
  const bool open_to_others = ::fstat(number, &status) == 0 && (status.st_mode & 077) != 0;
  const bool closed = !open_to_others || ::fchmod(number, 0600) == 0;
  ::close(number);
  if (closed) return {};
  return failure(ErrorCode::io_failed, "the database " + file.string() +
                                           " can be read by others and belongs to another user; run: chmod 600 " +
                                           file.string());
}

}  // namespace

struct Connection::Handle {
  struct Stored {
    sqlite3_stmt* statement = nullptr;
    bool in_use = false;
  };

  ~Handle() {
    for (auto& [sql, stored] : statements) sqlite3_finalize(stored.statement);
    sqlite3_close_v2(database);
  }

  sqlite3* database = nullptr;
  std::unordered_map<std::string, Stored> statements;
};

Statement::Statement(Statement&& other) noexcept
    : database_(other.database_),
      statement_(std::exchange(other.statement_, nullptr)),
      in_use_(std::exchange(other.in_use_, nullptr)),
      bind_result_(other.bind_result_) {}

Statement::~Statement() {
  if (statement_ == nullptr) return;
  if (in_use_ == nullptr) {
    sqlite3_finalize(statement_);
    return;
  }
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
  *in_use_ = false;
}

void Statement::bind(int parameter, std::nullptr_t) {
  const int result = sqlite3_bind_null(statement_, parameter + 1);
  if (bind_result_ == SQLITE_OK) bind_result_ = result;
}

void Statement::bind(int parameter, std::int64_t value) {
  const int result = sqlite3_bind_int64(statement_, parameter + 1, value);
  if (bind_result_ == SQLITE_OK) bind_result_ = result;
}

void Statement::bind(int parameter, double value) {
  const int result = sqlite3_bind_double(statement_, parameter + 1, value);
  if (bind_result_ == SQLITE_OK) bind_result_ = result;
}

void Statement::bind(int parameter, std::string_view value) {
  const int result = sqlite3_bind_text64(statement_, parameter + 1, value.data() == nullptr ? "" : value.data(),
                                         value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  if (bind_result_ == SQLITE_OK) bind_result_ = result;
}

void Statement::bind(int parameter, const Blob& value) {
  const int result = value.empty()
                         ? sqlite3_bind_zeroblob(statement_, parameter + 1, 0)
                         : sqlite3_bind_blob64(statement_, parameter + 1, value.data(), value.size(), SQLITE_TRANSIENT);
  if (bind_result_ == SQLITE_OK) bind_result_ = result;
}

Result<bool> Statement::step() {
  const int result = bind_result_ == SQLITE_OK ? sqlite3_step(statement_) : bind_result_;
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) return false;
  return std::unexpected(sqlite_error(database_, result));
}

bool Statement::is_null(int index) const { return sqlite3_column_type(statement_, index) == SQLITE_NULL; }

std::int64_t Statement::integer_column(int index) const { return sqlite3_column_int64(statement_, index); }

double Statement::double_column(int index) const { return sqlite3_column_double(statement_, index); }

std::string Statement::text_column(int index) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, index));
  if (text == nullptr) return {};
  return std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(statement_, index)));
}

Blob Statement::blob_column(int index) const {
  const auto* bytes = static_cast<const std::uint8_t*>(sqlite3_column_blob(statement_, index));
  if (bytes == nullptr) return {};
  return Blob(bytes, bytes + sqlite3_column_bytes(statement_, index));
}

Connection::Connection(std::unique_ptr<Handle> handle) : handle_(std::move(handle)) {}
Connection::Connection(Connection&&) noexcept = default;
Connection& Connection::operator=(Connection&&) noexcept = default;
Connection::~Connection() = default;

Result<Connection> Connection::open(const std::filesystem::path& file, Mode mode) {
  const bool writes = mode == Mode::read_write;
  if (writes) {
    if (auto made = make_owner_only(file); !made) return std::unexpected(std::move(made.error()));
  }
  auto handle = std::make_unique<Handle>();
  const int flags =
      (writes ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int result = sqlite3_open_v2(file.c_str(), &handle->database, flags, nullptr);
  if (result != SQLITE_OK) return std::unexpected(sqlite_error(handle->database, result));
  sqlite3_busy_timeout(handle->database, busy_milliseconds);
  Connection connection(std::move(handle));
  // Small caches: this is a database of keys and records, and several connections share the process.
  std::string settings = "PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA cache_size = -1024;";
  // Journal mode first: nothing may be written under any other.
  if (writes) settings = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; " + settings;
  if (auto set = connection.execute_script(settings); !set) return std::unexpected(std::move(set.error()));
  // Opening alone reads nothing: a file that is no database would only show later.
  if (auto read = connection.query<std::int64_t>("SELECT count(*) FROM sqlite_schema"); !read) {
    return std::unexpected(std::move(read.error()));
  }
  return connection;
}

Result<Statement> Connection::prepare(std::string_view sql) {
  sqlite3* const database = handle_->database;
  const auto known = handle_->statements.find(std::string(sql));
  if (known != handle_->statements.end() && !known->second.in_use) {
    known->second.in_use = true;
    return Statement(database, known->second.statement, &known->second.in_use);
  }
  sqlite3_stmt* statement = nullptr;
  const int result = sqlite3_prepare_v3(database, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                                        &statement, nullptr);
  if (result != SQLITE_OK) return std::unexpected(sqlite_error(database, result));
  if (known != handle_->statements.end() || handle_->statements.size() >= most_stored_statements) {
    return Statement(database, statement, nullptr);
  }
  auto& stored = handle_->statements[std::string(sql)];
  stored = {statement, true};
  return Statement(database, statement, &stored.in_use);
}

Result<std::int64_t> Connection::run(Statement& statement) {
  while (true) {
    const auto more = statement.step();
    if (!more) return std::unexpected(more.error());
    if (!*more) return sqlite3_changes64(handle_->database);
  }
}

Result<void> Connection::execute_script(const std::string& sql) {
  const int result = sqlite3_exec(handle_->database, sql.c_str(), nullptr, nullptr, nullptr);
  if (result != SQLITE_OK) return std::unexpected(sqlite_error(handle_->database, result));
  return {};
}

Result<std::int64_t> Connection::data_version() {
  auto rows = query<std::int64_t>("PRAGMA data_version");
  if (!rows) return std::unexpected(std::move(rows.error()));
  return std::get<0>(rows->front());
}

}  // namespace molly::store
