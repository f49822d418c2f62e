#pragma once

#include "core/error.h"

struct sqlite3;

namespace molly::store {

// What went wrong last on this database, as a sentence that says what to do. `code` is SQLite's extended code.
Error sqlite_error(sqlite3* database, int code);

}  // namespace molly::store
