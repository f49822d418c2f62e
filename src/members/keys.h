#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/secret.h"
#include "core/error.h"
#include "core/tier.h"
#include "store/database.h"

namespace molly::members {

// What a key may do beyond being known. Scopes only narrow what policy allows.
struct Scope {
  std::optional<Tier> max_tier;     // absent: as policy says
  std::vector<std::string> models;  // names that `model` may ask for; empty: all
  bool operator==(const Scope&) const = default;
};

// One access key without its secret.
struct Key {
  std::string id;                  // 8 hex digits; safe to show and to log
  std::string label;               // what the owner calls it
  std::string member;              // who acts by it: what grants name
  std::vector<std::string> roles;  // "analyst", ...; grants name them as "role:analyst"
  Scope scope;
  std::chrono::sys_seconds created;
  std::optional<std::chrono::sys_seconds> expires;
  std::optional<std::chrono::sys_seconds> revoked;

  bool usable_at(std::chrono::sys_seconds now) const { return !revoked && (!expires || now < *expires); }
  bool operator==(const Key&) const = default;
};

struct NewKey {
  std::string label;   // 1 to 100 characters
  std::string member;  // empty: the label
  std::vector<std::string> roles;
  Scope scope;
  std::optional<std::chrono::sys_seconds> expires;  // must lie in the future
};

struct CreatedKey {
  Key key;
  base::Secret text;  // molly_<8 hex>_<43 base64url>_<6 checksum>: to be shown once, stored nowhere
};

// The schema to pass to store::Database::open.
store::Schema schema();

// Access keys. Only a keyed BLAKE2b of the secret part is stored; the hash's key, the pepper, stands in its
// own file (<data>/keys/pepper, 0600), so that the database alone does not help to guess.
//
// verify() reads an immutable snapshot in memory and may be called from any thread. The snapshot follows the
// database within half a second, so keys that another process created or revoked count at once. All other
// calls block on the disk.
class Keys {
 public:
  // `database` must outlive the keys. Starts one thread, which wakes four times a second.
  static Result<std::unique_ptr<Keys>> open(const std::filesystem::path& keys_folder, store::Database& database);
  ~Keys();

  // The new key is on the disk when this returns.
  Result<CreatedKey> create(const NewKey& wanted);
  // All keys, revoked and expired ones too, oldest first.
  Result<std::vector<Key>> list() const;
  // not_found where there is no such key; revoking twice keeps the first time.
  Result<void> revoke(std::string_view id);

  // Who presents this key. unauthenticated, with a sentence that tells apart: not a Molly key, mistyped (its
  // checksum does not fit), unknown, revoked, expired. The last two only to who holds the true secret.
  Result<std::shared_ptr<const Key>> verify(std::string_view presented) const;

  // There is at least one key that would be accepted now.
  bool any_key_exists() const;

  // Reads the database now instead of at the next tick.
  Result<void> reload();

 private:
  struct State;
  explicit Keys(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace molly::members
