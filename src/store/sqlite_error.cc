#include "store/sqlite_error.h"

#include <sqlite3.h>

namespace molly::store {
namespace {

std::string file_of(sqlite3* database) {
  const char* name = database == nullptr ? nullptr : sqlite3_db_filename(database, "main");
  return name == nullptr || name[0] == '\0' ? "the database" : "the database " + std::string(name);
}

}  // namespace

Error sqlite_error(sqlite3* database, int code) {
  const std::string file = file_of(database);
  const auto io_failed = [](std::string message) { return Error{ErrorCode::io_failed, std::move(message), {}}; };
  switch (code & 0xFF) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return io_failed(file + " is locked: another process holds it for longer than 5 seconds; stop that process");
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return io_failed(file + " is damaged or not a database; restore it from a backup, or move it away to start anew");
    case SQLITE_FULL: return io_failed(file + " cannot grow: the disk is full");
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return io_failed(file + " cannot be written; check the owner and mode of the file and its folder");
    case SQLITE_CANTOPEN:
      return io_failed(file + " cannot be opened; check that it exists and who owns the file and its folder");
    case SQLITE_IOERR: return io_failed(file + ": reading or writing failed; check the disk");
    case SQLITE_CONSTRAINT:
      return Error{ErrorCode::conflict, file + " refused a value: " + sqlite3_errmsg(database), {}};
    default: break;
  }
  const char* reason = database == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(database);
  return Error{ErrorCode::internal, file + ": " + reason, {}};
}

}  // namespace molly::store
