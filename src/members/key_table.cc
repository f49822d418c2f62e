#include "members/key_table.h"

namespace molly::members {
namespace {

// Names hold no line ends (see Keys::create), so a list is its names in lines.
std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) {
    if (!out.empty()) out += '\n';
    out += name;
  }
  return out;
}

std::vector<std::string> split(std::string_view lines) {
  std::vector<std::string> out;
  while (!lines.empty()) {
    const auto end = std::min(lines.find('\n'), lines.size());
    out.emplace_back(lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return out;
}

std::chrono::sys_seconds time_of(std::int64_t seconds) {
  return std::chrono::sys_seconds(std::chrono::seconds(seconds));
}

std::optional<std::chrono::sys_seconds> time_of(const std::optional<std::int64_t>& seconds) {
  if (!seconds) return std::nullopt;
  return time_of(*seconds);
}

std::optional<std::int64_t> seconds_of(const std::optional<std::chrono::sys_seconds>& time) {
  if (!time) return std::nullopt;
  return time->time_since_epoch().count();
}

Result<std::optional<Tier>> tier_of(const std::optional<std::int64_t>& number, const std::string& id) {
  if (!number) return std::nullopt;
  if (*number < 0 || *number >= static_cast<std::int64_t>(all_tiers.size())) {
    return failure(ErrorCode::io_failed, "the database holds an unknown tier for the key " + id);
  }
  return all_tiers[static_cast<std::size_t>(*number)];
}

}  // namespace

store::Schema schema() {
  return {"members", {{1, "access keys", R"(
CREATE TABLE access_keys (
  id       TEXT    PRIMARY KEY,
  label    TEXT    NOT NULL,
  member   TEXT    NOT NULL,
  roles    TEXT    NOT NULL,
  models   TEXT    NOT NULL,
  max_tier INTEGER,
  hash     BLOB    NOT NULL,
  created  INTEGER NOT NULL,
  expires  INTEGER,
  revoked  INTEGER
) STRICT)"}}};
}

Result<std::vector<StoredKey>> read_keys(store::Connection& connection) {
  using Time = std::optional<std::int64_t>;
  auto rows = connection.query<std::string, std::string, std::string, std::string, std::string, Time, store::Blob,
                               std::int64_t, Time, Time>(
      "SELECT id, label, member, roles, models, max_tier, hash, created, expires, revoked FROM access_keys "
      "ORDER BY created, rowid");
  if (!rows) return std::unexpected(std::move(rows.error()));
  std::vector<StoredKey> out;
  for (auto& [id, label, member, roles, models, max_tier, hash, created, expires, revoked] : *rows) {
    StoredKey stored;
    const auto tier = tier_of(max_tier, id);
    if (!tier) return std::unexpected(tier.error());
    if (hash.size() != stored.hash.size()) {
      return failure(ErrorCode::io_failed, "the database holds a damaged hash for the key " + id);
    }
    std::ranges::copy(hash, stored.hash.begin());
    stored.key = Key{std::move(id),    std::move(label), std::move(member), split(roles), Scope{*tier, split(models)},
                     time_of(created), time_of(expires), time_of(revoked)};
    out.push_back(std::move(stored));
  }
  return out;
}

Result<void> insert_key(store::Connection& connection, const StoredKey& stored) {
  const Key& key = stored.key;
  std::optional<int> tier;
  if (key.scope.max_tier) tier = static_cast<int>(*key.scope.max_tier);
  auto done = connection.execute(
      "INSERT INTO access_keys (id, label, member, roles, models, max_tier, hash, created, expires) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
      key.id, key.label, key.member, joined(key.roles), joined(key.scope.models), tier,
      store::Blob(stored.hash.begin(), stored.hash.end()), key.created.time_since_epoch().count(),
      seconds_of(key.expires));
  if (!done) return std::unexpected(std::move(done.error()));
  return {};
}

Result<void> revoke_key(store::Connection& connection, const std::string& id, std::chrono::sys_seconds now) {
  auto known = connection.query<int>("SELECT 1 FROM access_keys WHERE id = ?", id);
  if (!known) return std::unexpected(std::move(known.error()));
  if (known->empty()) return failure(ErrorCode::not_found, "there is no key " + id + "; see: molly keys list");
  auto done = connection.execute("UPDATE access_keys SET revoked = ? WHERE id = ? AND revoked IS NULL",
                                 now.time_since_epoch().count(), id);
  if (!done) return std::unexpected(std::move(done.error()));
  return {};
}

}  // namespace molly::members
