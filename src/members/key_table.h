#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "members/keys.h"
#include "store/connection.h"

// The table of access keys: rows to values and back.
namespace molly::members {

using KeyHash = std::array<std::uint8_t, 32>;

struct StoredKey {
  Key key;
  KeyHash hash{};
};

// Oldest first.
Result<std::vector<StoredKey>> read_keys(store::Connection& connection);
// conflict where the id is taken.
Result<void> insert_key(store::Connection& connection, const StoredKey& stored);
// not_found where there is no such key; a key that was revoked before stays as it is.
Result<void> revoke_key(store::Connection& connection, const std::string& id, std::chrono::sys_seconds now);

}  // namespace molly::members
