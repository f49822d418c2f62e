#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "http/server.h"
#include "members/keys.h"

namespace molly::server {

// What [server] says about who may ask from where.
struct AccessRules {
  std::vector<std::string> allowed_hosts;
  std::vector<std::string> allowed_origins;
};

// Who is behind a request.
struct Identity {
  std::shared_ptr<const members::Key> key;  // null: local, without a key
  bool owner = false;                       // over the owner's unix socket: may administer
};

// The unix socket belongs to the owner and needs no key. On loopback a Molly key is checked when one is
// presented, and anything else that SDKs insist on sending as a key is ignored. From elsewhere a valid key is
// needed. Requests that a web page of another origin, or a name that is not ours, caused are refused
// (forbidden): browsers send Origin, and DNS rebinding shows in Host.
Result<Identity> identify(const http::Exchange& exchange, const members::Keys& keys, const AccessRules& rules);

// The two checks by themselves, for tests: `host` and `origin` as the headers have them.
bool host_is_ours(std::string_view host, const AccessRules& rules);
bool origin_is_ours(std::string_view origin, std::string_view host, const AccessRules& rules);

}  // namespace molly::server
