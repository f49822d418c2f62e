#pragma once

#include <memory>

#include "commands/command.h"
#include "members/keys.h"
#include "store/database.h"

namespace molly::apps {

// All tables of the program, for store::Database::open.
std::vector<store::Schema> all_schemas();

// The data folder with its database and keys, for commands that work on them directly. A running server
// sees what they change.
class Opened {
 public:
  static Result<std::unique_ptr<Opened>> open(const Globals& globals);

  const store::DataFolder& folder() const { return folder_; }
  store::Database& database() { return database_; }
  members::Keys& keys() { return *keys_; }

 private:
  Opened(store::DataFolder folder, store::Database database)
      : folder_(std::move(folder)), database_(std::move(database)) {}

  store::DataFolder folder_;
  store::Database database_;
  std::unique_ptr<members::Keys> keys_;
};

}  // namespace molly::apps
