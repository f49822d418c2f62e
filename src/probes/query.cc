#include "probes/query.h"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <memory>

#include "probes/check.h"
#include "probes/phrase.h"

namespace molly::probes {

namespace {

constexpr int rows_in_table = 60;
constexpr std::size_t most_rows = 1000;
constexpr std::size_t most_bytes = 1'000'000;
constexpr int steps_between_calls = 1000;
constexpr int most_calls = 200;

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct FinishStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, FinishStatement>;

std::unexpected<Error> refused(std::string_view why) { return failure(ErrorCode::invalid_request, std::string(why)); }

std::string quoted(std::string_view text) {
  std::string sql = "'";
  for (const char letter : text) sql += letter == '\'' ? std::string("''") : std::string(1, letter);
  return sql + "'";
}

std::string value_for(Random& random, const Column& column, const Filling& filling) {
  if (column.is_text) return quoted(random.pick(filling.texts));
  return std::to_string(random.pick(filling.numbers));
}

std::string filling_script(const Table& table, const Filling& filling) {
  Random random(filling.seed);
  std::vector<std::string> columns;
  columns.reserve(table.columns.size());
  for (const Column& column : table.columns) {
    columns.push_back(fill("\"{0}\" {1}", {column.name, column.is_text ? "TEXT" : "INTEGER"}));
  }
  std::vector<std::string> rows;
  for (int row = 0; row < rows_in_table; ++row) {
    std::vector<std::string> values;
    values.reserve(table.columns.size());
    for (const Column& column : table.columns) values.push_back(value_for(random, column, filling));
    rows.push_back("(" + join(values, ",") + ")");
  }
  return fill("PRAGMA temp_store = MEMORY; CREATE TABLE \"{0}\"({1}); INSERT INTO \"{0}\" VALUES {2};",
              {table.name, join(columns, ","), join(rows, ",")});
}

// Names of SQLite functions that compute from their arguments alone and cannot make much of little.
bool is_pure_function(std::string_view name) {
  constexpr std::array<std::string_view, 16> pure{"count",  "sum",   "min",    "max",   "avg",   "total",
                                                  "abs",    "round", "length", "lower", "upper", "coalesce",
                                                  "ifnull", "trim",  "substr", "like"};
  return std::ranges::contains(pure, lower(name));
}

int authorize(void*, int action, const char* first, const char* second, const char*, const char*) {
  switch (action) {
    case SQLITE_SELECT: return SQLITE_OK;
    case SQLITE_READ: return std::string_view(first).starts_with("sqlite_") ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_FUNCTION: return is_pure_function(second) ? SQLITE_OK : SQLITE_DENY;
    default: return SQLITE_DENY;
  }
}

int count_call(void* calls) { return ++*static_cast<int*>(calls) > most_calls ? 1 : 0; }

void bound(sqlite3* database) {
  constexpr std::array<std::pair<int, int>, 9> limits{{{SQLITE_LIMIT_LENGTH, 2'000},
                                                       {SQLITE_LIMIT_SQL_LENGTH, 5'000},
                                                       {SQLITE_LIMIT_COLUMN, 50},
                                                       {SQLITE_LIMIT_EXPR_DEPTH, 50},
                                                       {SQLITE_LIMIT_COMPOUND_SELECT, 4},
                                                       {SQLITE_LIMIT_VDBE_OP, 5'000},
                                                       {SQLITE_LIMIT_FUNCTION_ARG, 8},
                                                       {SQLITE_LIMIT_ATTACHED, 0},
                                                       {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 50}}};
  for (const auto& [limit, most] : limits) sqlite3_limit(database, limit, most);
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_set_authorizer(database, authorize, nullptr);
}

Result<Database> open_filled(const Table& table, const Filling& filling) {
  sqlite3* opened = nullptr;
  const int status = sqlite3_open_v2(":memory:", &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, nullptr);
  Database database(opened);
  if (status != SQLITE_OK) return failure(ErrorCode::internal, "SQLite has no memory for a table.");
  if (sqlite3_exec(opened, filling_script(table, filling).c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    return failure(ErrorCode::internal, sqlite3_errmsg(opened));
  }
  bound(opened);
  return database;
}

Row read_row(sqlite3_stmt* statement) {
  Row row;
  for (int column = 0; column < sqlite3_column_count(statement); ++column) {
    const void* bytes = sqlite3_column_blob(statement, column);
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
    const bool is_null = sqlite3_column_type(statement, column) == SQLITE_NULL;
    row.push_back(is_null ? "NULL" : "=" + std::string(static_cast<const char*>(bytes), size));
  }
  return row;
}

Result<Statement> prepare(sqlite3* database, std::string_view sql) {
  sqlite3_stmt* prepared = nullptr;
  const char* rest = nullptr;
  const int status = sqlite3_prepare_v2(database, sql.data(), static_cast<int>(sql.size()), &prepared, &rest);
  Statement statement(prepared);
  if (status != SQLITE_OK) return refused(sqlite3_errmsg(database));
  if (!statement) return refused("There is no statement.");
  if (sqlite3_stmt_isexplain(prepared) != 0) return refused("The query is explained, not run.");
  if (!trim(sql.substr(static_cast<std::size_t>(rest - sql.data()))).empty())
    return refused("There is more than one statement.");
  return statement;
}

}  // namespace

Result<std::vector<Row>> run_query(const Table& table, const Filling& filling, std::string_view sql) {
  const auto database = open_filled(table, filling);
  if (!database) return std::unexpected(database.error());
  int calls = 0;
  sqlite3_progress_handler(database->get(), steps_between_calls, count_call, &calls);
  const auto statement = prepare(database->get(), sql);
  if (!statement) return std::unexpected(statement.error());
  std::vector<Row> rows;
  std::size_t bytes = 0;
  while (true) {
    const int status = sqlite3_step(statement->get());
    if (status == SQLITE_DONE) return rows;
    if (status != SQLITE_ROW) return refused(sqlite3_errmsg(database->get()));
    if (rows.size() == most_rows) return refused("The query gives too many rows.");
    rows.push_back(read_row(statement->get()));
    for (const std::string& value : rows.back()) bytes += value.size();
    if (bytes > most_bytes) return refused("The query gives too much text.");
  }
}

}  // namespace molly::probes
