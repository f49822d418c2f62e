#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace molly::store {

using Blob = std::vector<std::uint8_t>;

// A prepared statement in use; handed back to its connection for the next time when it dies. Parameters
// count from 0, as columns do.
class Statement {
 public:
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  void bind(int parameter, std::nullptr_t);
  void bind(int parameter, std::int64_t value);
  void bind(int parameter, double value);
  void bind(int parameter, std::string_view value);
  void bind(int parameter, const Blob& value);
  template <std::integral Integer>
  void bind(int parameter, Integer value) {
    bind(parameter, static_cast<std::int64_t>(value));
  }
  template <class Value>
  void bind(int parameter, const std::optional<Value>& value) {
    if (value) {
      bind(parameter, *value);
    } else {
      bind(parameter, nullptr);
    }
  }

  // True: there is a row to read. False: done.
  Result<bool> step();

  template <class Value>
  Value column(int index) const {
    if constexpr (is_optional<Value>) {
      if (is_null(index)) return std::nullopt;
      return column<typename Value::value_type>(index);
    } else if constexpr (std::same_as<Value, std::string>) {
      return text_column(index);
    } else if constexpr (std::same_as<Value, Blob>) {
      return blob_column(index);
    } else if constexpr (std::floating_point<Value>) {
      return static_cast<Value>(double_column(index));
    } else {
      static_assert(std::integral<Value>);
      return static_cast<Value>(integer_column(index));
    }
  }

 private:
  friend class Connection;
  template <class Value>
  static constexpr bool is_optional = false;
  template <class Value>
  static constexpr bool is_optional<std::optional<Value>> = true;

  Statement(sqlite3* database, sqlite3_stmt* statement, bool* in_use)
      : database_(database), statement_(statement), in_use_(in_use) {}
  bool is_null(int index) const;
  std::int64_t integer_column(int index) const;
  double double_column(int index) const;
  std::string text_column(int index) const;
  Blob blob_column(int index) const;

  sqlite3* database_;
  sqlite3_stmt* statement_;
  bool* in_use_;         // of the connection's stored form; null: this statement belongs to nobody else
  int bind_result_ = 0;  // the first bind that failed; step() reports it
};

// One connection to the database, for one thread at a time. Calls block on the disk, and for up to the busy
// timeout (5 s) while another process writes. Errors (io_failed) say whether the file is locked, damaged,
// full or not writable; they never hold parameter values.
class Connection {
 public:
  enum class Mode { read_only, read_write };

  // read_write creates the file with mode 0600.
  static Result<Connection> open(const std::filesystem::path& file, Mode mode);
  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;
  ~Connection();

  // `sql` is one statement; its compiled form is kept for the next call with the same text.
  Result<Statement> prepare(std::string_view sql);

  // Runs one statement to its end; answers how many rows it changed.
  template <class... Values>
  Result<std::int64_t> execute(std::string_view sql, const Values&... values) {
    auto statement = prepare(sql);
    if (!statement) return std::unexpected(std::move(statement.error()));
    bind_all(*statement, values...);
    return run(*statement);
  }

  // All rows, typed: query<std::int64_t, std::string>("SELECT id, name FROM people WHERE age > ?", 30).
  template <class... Columns, class... Values>
  Result<std::vector<std::tuple<Columns...>>> query(std::string_view sql, const Values&... values) {
    auto statement = prepare(sql);
    if (!statement) return std::unexpected(std::move(statement.error()));
    bind_all(*statement, values...);
    std::vector<std::tuple<Columns...>> rows;
    while (true) {
      const auto more = statement->step();
      if (!more) return std::unexpected(more.error());
      if (!*more) return rows;
      rows.push_back(read_row<Columns...>(*statement, std::index_sequence_for<Columns...>{}));
    }
  }

  // Several statements without parameters, as in a migration.
  Result<void> execute_script(const std::string& sql);

  // Changes whenever another connection, of any process, has committed.
  Result<std::int64_t> data_version();

 private:
  struct Handle;
  explicit Connection(std::unique_ptr<Handle> handle);

  template <class... Values>
  static void bind_all(Statement& statement, const Values&... values) {
    [[maybe_unused]] int parameter = 0;
    (statement.bind(parameter++, values), ...);
  }
  template <class... Columns, std::size_t... Index>
  static std::tuple<Columns...> read_row(const Statement& statement, std::index_sequence<Index...>) {
    return {statement.template column<Columns>(static_cast<int>(Index))...};
  }
  Result<std::int64_t> run(Statement& statement);

  std::unique_ptr<Handle> handle_;
};

}  // namespace molly::store
