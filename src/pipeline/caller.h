#pragma once

#include <memory>
#include <optional>
#include <string>

#include "labels/label.h"
#include "members/keys.h"
#include "policy/profile.h"

namespace molly::pipeline {

// Who asks and what they declared about the request, as `server` found it on the connection and in the headers.
struct Caller {
  std::shared_ptr<const members::Key> key;  // null: the owner on this machine, without a key
  std::string application;                  // x-molly-application
  std::optional<labels::Confidentiality> confidentiality;
  labels::NameSet zones;  // x-molly-zones; all when not given
  std::optional<Tier> max_tier;
  std::optional<policy::CarriedClearance> carried;

  std::string_view key_id() const { return key ? std::string_view(key->id) : std::string_view(); }
};

// Reads the declaring headers. `find` returns a header's value by name. An unreadable one is an error
// (invalid_request): a restriction that is not understood must not be ignored.
template <class Find>
Result<Caller> read_caller(Find find);

Result<Caller> parse_caller(std::optional<std::string_view> application,
                            std::optional<std::string_view> confidentiality, std::optional<std::string_view> zones,
                            std::optional<std::string_view> max_tier, std::optional<std::string_view> carried);

template <class Find>
Result<Caller> read_caller(Find find) {
  return parse_caller(find("x-molly-application"), find("x-molly-confidentiality"), find("x-molly-zones"),
                      find("x-molly-max-tier"), find("x-molly-clearance"));
}

policy::SovereigntyProfile sovereignty_profile(const Caller& caller, std::string_view model);

}  // namespace molly::pipeline
