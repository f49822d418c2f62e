#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace molly::probes {

struct Column {
  std::string_view name;
  bool is_text = false;
};

struct Table {
  std::string_view name;
  std::vector<Column> columns;
};

// What rows may hold: values that queries ask for, so that a wrong condition gives other rows.
struct Filling {
  std::vector<std::int64_t> numbers;
  std::vector<std::string_view> texts;
  std::uint64_t seed = 0;
};

using Row = std::vector<std::string>;

// The rows of one SELECT on a database in memory that holds only `table`, filled with 60 rows.
//
// Safe on any `sql`: one statement, reading that table and pure functions only, no attached files, no recursion, and
// bounds on length, steps and rows. invalid_request: SQLite or a bound refuses it.
Result<std::vector<Row>> run_query(const Table& table, const Filling& filling, std::string_view sql);

}  // namespace molly::probes
