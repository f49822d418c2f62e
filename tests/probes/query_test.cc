#include "probes/query.h"

#include <gtest/gtest.h>

#include <string>

namespace molly::probes {
namespace {

const Table people{"people", {{"name", true}, {"age", false}}};
const Filling filling{{10, 20, 30}, {"Ana", "O'Neil"}, 1};

TEST(Query, gives_the_rows_of_a_table) {
  const auto rows = run_query(people, filling, "SELECT DISTINCT age FROM people ORDER BY age");
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(*rows, (std::vector<Row>{{"=10"}, {"=20"}, {"=30"}}));
}

TEST(Query, tells_null_from_text) {
  const auto rows = run_query(people, filling, "SELECT NULL, 'NULL', MAX(age) FROM people WHERE age > 99");
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(*rows, (std::vector<Row>{{"NULL", "=NULL", "NULL"}}));
}

TEST(Query, that_does_more_than_read_the_table_is_refused) {
  for (const std::string_view sql :
       {"",
        ";",
        "-- nothing",
        "DROP TABLE people",
        "DELETE FROM people",
        "UPDATE people SET age = 1",
        "INSERT INTO people VALUES ('x', 1)",
        "CREATE TABLE t(a)",
        "PRAGMA user_version",
        "VACUUM INTO '/tmp/x'",
        "ATTACH '/etc/passwd' AS a",
        "BEGIN",
        "SELECT 1; SELECT 2",
        "SELECT * FROM sqlite_master",
        "SELECT * FROM sqlite_schema",
        "SELECT load_extension('x')",
        "SELECT readfile('/etc/passwd')",
        "SELECT writefile('/tmp/x', 'y')",
        "SELECT randomblob(1000)",
        "SELECT zeroblob(100000000)",
        "SELECT * FROM pragma_database_list",
        "EXPLAIN SELECT 1",
        "SELECT printf('%1000000d', 1)",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"}) {
    EXPECT_FALSE(run_query(people, filling, sql)) << sql;
  }
}

TEST(Query, beyond_the_bounds_is_refused) {
  EXPECT_FALSE(run_query(people, filling, "SELECT a.age FROM people a, people b"));
  EXPECT_FALSE(run_query(people, filling, "SELECT COUNT(*) FROM people a, people b, people c, people d, people e"));
  std::string deep = "SELECT 1";
  for (int level = 0; level < 100; ++level) deep += "+1";
  EXPECT_FALSE(run_query(people, filling, deep));
  EXPECT_FALSE(run_query(people, filling, "SELECT '" + std::string(6000, 'x') + "'"));
  EXPECT_FALSE(
      run_query(people, filling, "SELECT '" + std::string(1500, 'x') + "' || '" + std::string(1500, 'x') + "'"));
  const std::string long_text = "'" + std::string(1900, 'x') + "'";
  EXPECT_TRUE(run_query(people, filling, "SELECT " + long_text + " FROM people"));
  EXPECT_FALSE(run_query(people, filling, "SELECT " + long_text + " FROM people a, people b WHERE a.rowid < 15"));
}

}  // namespace
}  // namespace molly::probes
