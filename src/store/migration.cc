#include "store/migration.h"

namespace molly::store {
namespace {

constexpr const char* bookkeeping = R"(
CREATE TABLE IF NOT EXISTS schema_steps (
  schema     TEXT    NOT NULL,
  number     INTEGER NOT NULL,
  name       TEXT    NOT NULL,
  checksum   TEXT    NOT NULL,
  applied_at TEXT    NOT NULL DEFAULT (datetime('now')),
  PRIMARY KEY (schema, number)
) STRICT, WITHOUT ROWID)";

std::unexpected<Error> refused(std::string sentence) { return failure(ErrorCode::config_invalid, std::move(sentence)); }

// FNV-1a: tells edited steps from released ones, guards against no attacker.
std::string checksum(std::string_view text) {
  std::uint64_t sum = 0xcbf29ce484222325;
  for (const char c : text) sum = (sum ^ static_cast<std::uint8_t>(c)) * 0x100000001b3;
  char digits[17];
  return std::string(digits, std::to_chars(digits, digits + sizeof digits, sum, 16).ptr);
}

Result<void> check_list(std::span<const Schema> schemas) {
  for (const Schema& schema : schemas) {
    int expected = 0;
    for (const Migration& step : schema.migrations) {
      if (step.number == ++expected) continue;
      return refused("the program's own schema " + schema.name + " has no step " + std::to_string(expected));
    }
    if (std::ranges::count(schemas, schema.name, &Schema::name) != 1) {
      return refused("the program has two schemas named " + schema.name);
    }
  }
  return {};
}

Result<void> check_applied(std::span<const Schema> schemas, const std::string& name, int number,
                           const std::string& sum) {
  const auto schema = std::ranges::find(schemas, name, &Schema::name);
  if (schema == schemas.end() || number > static_cast<int>(schema->migrations.size())) {
    return refused("the database was written by a newer version of Molly (" + name + ", step " +
                   std::to_string(number) + "); install that version, or use another data folder with --data");
  }
  const Migration& step = schema->migrations[static_cast<std::size_t>(number) - 1];
  if (checksum(step.sql) == sum) return {};
  return refused("the database was made by another edition of Molly: step " + std::to_string(number) + " of " + name +
                 " (" + step.name + ") differs");
}

Result<void> apply_missing(Connection& connection, const Schema& schema, std::size_t applied) {
  for (const Migration& step : std::span(schema.migrations).subspan(applied)) {
    if (auto done = connection.execute_script(step.sql); !done) {
      done.error().message = "step " + std::to_string(step.number) + " of schema " + schema.name + " (" + step.name +
                             ") failed: " + done.error().message;
      return done;
    }
    auto noted = connection.execute("INSERT INTO schema_steps (schema, number, name, checksum) VALUES (?, ?, ?, ?)",
                                    schema.name, step.number, step.name, checksum(step.sql));
    if (!noted) return std::unexpected(std::move(noted.error()));
  }
  return {};
}

Result<void> bring_up_to_date(Connection& connection, std::span<const Schema> schemas) {
  if (auto made = connection.execute_script(bookkeeping); !made) return made;
  const auto rows = connection.query<std::string, int, std::string>(
      "SELECT schema, number, checksum FROM schema_steps ORDER BY schema, number");
  if (!rows) return std::unexpected(rows.error());
  std::map<std::string, std::size_t> applied;
  for (const auto& [name, number, sum] : *rows) {
    if (auto fits = check_applied(schemas, name, number, sum); !fits) return fits;
    ++applied[name];
  }
  for (const Schema& schema : schemas) {
    if (auto done = apply_missing(connection, schema, applied[schema.name]); !done) return done;
  }
  return {};
}

}  // namespace

Result<void> migrate(Connection& connection, std::span<const Schema> schemas) {
  if (auto sound = check_list(schemas); !sound) return sound;
  // Immediate: of two programs that start at once, one waits and then finds all done.
  if (auto begun = connection.execute_script("BEGIN IMMEDIATE"); !begun) return begun;
  auto done = bring_up_to_date(connection, schemas);
  if (done) done = connection.execute_script("COMMIT");
  if (!done) (void)connection.execute_script("ROLLBACK");
  return done;
}

}  // namespace molly::store
