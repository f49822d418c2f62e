#include "store/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "../temporary_folder.h"
#include "store/migration.h"

namespace molly::store {
namespace {

using testing::HasSubstr;

class OpenDatabase : public testing::Test {
 protected:
  Connection open(Connection::Mode mode = Connection::Mode::read_write) {
    return Connection::open(file(), mode).value();
  }
  std::filesystem::path file() const { return temporary_.path() / "molly.db"; }

  TemporaryFolder temporary_;
};

TEST_F(OpenDatabase, keeps_every_type) {
  auto connection = open();
  ASSERT_TRUE(connection.execute_script("CREATE TABLE t (i INTEGER, d REAL, s TEXT, b BLOB, n INTEGER)").has_value());
  const std::string text("a\0b", 3);
  const auto changed =
      connection.execute("INSERT INTO t VALUES (?, ?, ?, ?, ?)", 7, 0.5, text, Blob{1, 0, 255}, std::optional<int>());
  EXPECT_EQ(changed.value(), 1);
  const auto rows =
      connection.query<int, double, std::string, Blob, std::optional<std::int64_t>>("SELECT * FROM t WHERE i = ?", 7);
  ASSERT_EQ(rows.value().size(), 1U);
  EXPECT_EQ(rows->front(), std::tuple(7, 0.5, text, Blob({1, 0, 255}), std::nullopt));
}

TEST_F(OpenDatabase, is_for_its_owner_only) {
  auto connection = open();
  ASSERT_TRUE(connection.execute_script("CREATE TABLE t (i)").has_value());
  for (const char* suffix : {"", "-wal", "-shm"}) {
    struct stat status{};
    ASSERT_EQ(::stat((file().string() + suffix).c_str(), &status), 0) << suffix;
    EXPECT_EQ(status.st_mode & 0777, 0600U) << suffix;
  }
}

TEST_F(OpenDatabase, enforces_foreign_keys) {
  auto connection = open();
  ASSERT_TRUE(connection.execute_script("CREATE TABLE a (i INTEGER PRIMARY KEY); CREATE TABLE b (i REFERENCES a(i))")
                  .has_value());
  const auto inserted = connection.execute("INSERT INTO b VALUES (?)", 4711);
  ASSERT_FALSE(inserted.has_value());
  EXPECT_EQ(inserted.error().code, ErrorCode::conflict);
  EXPECT_THAT(inserted.error().message, testing::Not(HasSubstr("4711")));
}

TEST_F(OpenDatabase, serves_one_statement_twice_at_a_time) {
  auto connection = open();
  auto first = connection.prepare("SELECT 1 UNION SELECT 2");
  auto second = connection.prepare("SELECT 1 UNION SELECT 2");
  EXPECT_TRUE(first->step().value());
  EXPECT_TRUE(second->step().value());
  EXPECT_TRUE(first->step().value());
  EXPECT_EQ(first->column<int>(0), 2);
  EXPECT_EQ(second->column<int>(0), 1);
}

TEST_F(OpenDatabase, tells_readers_that_something_changed) {
  auto writer = open();
  ASSERT_TRUE(writer.execute_script("CREATE TABLE t (i)").has_value());
  auto reader = open(Connection::Mode::read_only);
  const auto before = reader.data_version().value();
  EXPECT_EQ(reader.data_version().value(), before);
  ASSERT_TRUE(writer.execute("INSERT INTO t VALUES (1)").has_value());
  EXPECT_NE(reader.data_version().value(), before);
  EXPECT_FALSE(reader.execute("INSERT INTO t VALUES (1)").has_value());
}

TEST_F(OpenDatabase, says_when_it_is_damaged) {
  std::ofstream(file(), std::ios::binary) << std::string(8192, 'x');
  const auto opened = Connection::open(file(), Connection::Mode::read_write);
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, ErrorCode::io_failed);
  EXPECT_THAT(opened.error().message, HasSubstr("molly.db is damaged or not a database"));
}

TEST_F(OpenDatabase, says_when_it_is_not_there) {
  EXPECT_THAT(Connection::open(file(), Connection::Mode::read_only).error().message, HasSubstr("cannot be opened"));
  EXPECT_THAT(Connection::open(temporary_.path() / "no/molly.db", Connection::Mode::read_write).error().message,
              HasSubstr("cannot be opened"));
}

class Migrations : public OpenDatabase {
 protected:
  static std::vector<Schema> two_steps() {
    return {
        {"people",
         {{1, "names", "CREATE TABLE people (name TEXT)"}, {2, "ages", "ALTER TABLE people ADD COLUMN age INTEGER"}}}};
  }
  static std::vector<Schema> one_step() {
    auto schemas = two_steps();
    schemas[0].migrations.pop_back();
    return schemas;
  }
};

TEST_F(Migrations, run_once_and_in_order) {
  auto connection = open();
  ASSERT_TRUE(migrate(connection, one_step()).has_value());
  ASSERT_TRUE(connection.execute("INSERT INTO people VALUES (?)", "ana").has_value());
  ASSERT_TRUE(migrate(connection, two_steps()).has_value());
  ASSERT_TRUE(migrate(connection, two_steps()).has_value());
  const auto rows = connection.query<std::string, std::optional<int>>("SELECT name, age FROM people");
  EXPECT_EQ(rows.value().front(), std::tuple(std::string("ana"), std::nullopt));
}

TEST_F(Migrations, refuse_a_database_newer_than_the_program) {
  auto connection = open();
  ASSERT_TRUE(migrate(connection, two_steps()).has_value());
  const auto older = migrate(connection, one_step());
  ASSERT_FALSE(older.has_value());
  EXPECT_THAT(older.error().message, HasSubstr("written by a newer version of Molly (people, step 2)"));
  EXPECT_THAT(migrate(connection, {}).error().message, HasSubstr("newer version of Molly (people, step 1)"));
}

TEST_F(Migrations, refuse_a_step_that_was_changed) {
  auto connection = open();
  ASSERT_TRUE(migrate(connection, two_steps()).has_value());
  auto edited = two_steps();
  edited[0].migrations[0].sql += " STRICT";
  EXPECT_THAT(migrate(connection, edited).error().message, HasSubstr("step 1 of people (names) differs"));
}

TEST_F(Migrations, leave_nothing_behind_when_one_fails) {
  auto connection = open();
  auto broken = two_steps();
  broken[0].migrations[1].sql = "CREATE TABLE extra (i); SELECT no_such_column FROM people";
  EXPECT_THAT(migrate(connection, broken).error().message, HasSubstr("step 2 of schema people (ages) failed"));
  EXPECT_EQ(std::get<0>(connection.query<int>("SELECT count(*) FROM sqlite_schema").value().front()), 0);
  EXPECT_TRUE(migrate(connection, two_steps()).has_value());
}

TEST_F(Migrations, must_be_numbered_without_a_gap) {
  auto connection = open();
  auto gap = two_steps();
  gap[0].migrations[1].number = 3;
  EXPECT_THAT(migrate(connection, gap).error().message, HasSubstr("has no step 2"));
}

}  // namespace
}  // namespace molly::store
