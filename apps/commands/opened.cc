#include "commands/opened.h"

#include "targets/model_list.h"

namespace molly::apps {

std::vector<store::Schema> all_schemas() { return {members::schema(), targets::model_schema()}; }

Result<std::unique_ptr<Opened>> Opened::open(const Globals& globals) {
  auto folder = open_data(globals);
  if (!folder) return std::unexpected(folder.error());
  auto database = store::Database::open(folder->database(), all_schemas());
  if (!database) return std::unexpected(database.error());
  std::unique_ptr<Opened> out(new Opened(std::move(*folder), std::move(*database)));
  auto keys = members::Keys::open(out->folder_.keys(), out->database_);
  if (!keys) return std::unexpected(keys.error());
  out->keys_ = std::move(*keys);
  return out;
}

}  // namespace molly::apps
