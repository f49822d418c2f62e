#pragma once

#include <span>
#include <string>
#include <vector>

#include "store/connection.h"

namespace molly::store {

// One step of a schema. A step that was released is never changed, only followed by another: the database
// remembers its text's checksum.
struct Migration {
  int number = 0;    // 1, 2, 3, ... within its schema
  std::string name;  // what it does, in two or three words
  std::string sql;
};

// The tables of one part of the system, and how they came to be. apps/ composes all of them into one list.
struct Schema {
  std::string name;  // the folder's: "members"
  std::vector<Migration> migrations;
};

// Brings the database up to date in one transaction: all steps or none. Refused (config_invalid) where the
// database holds a step or a schema that this program does not know (it was written by a newer version), or
// one whose text differs, or where the list itself has a gap.
Result<void> migrate(Connection& connection, std::span<const Schema> schemas);

}  // namespace molly::store
