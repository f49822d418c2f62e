#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/tier.h"
#include "labels/label.h"

namespace molly::config {
class Section;
}

namespace molly::policy {

// [defaults]
struct Defaults {
  Tier max_tier = Tier::t1;  // ceiling without a grant: T0 or T1
  // What a request counts as that does not declare its confidentiality.
  labels::Confidentiality confidentiality = labels::Confidentiality::internal;
};

// A member by exact name, or everybody with a role ("role:NAME"). "owner" is also who uses this machine
// without a key.
struct MemberPattern {
  bool is_role = false;
  std::string name;
  bool operator==(const MemberPattern&) const = default;
};

// [[pin]]: for requests that match every given field exactly, a label and a ceiling. Only restricts.
struct Pin {
  std::optional<std::string> application;
  std::optional<std::string> member;
  std::optional<std::string> role;
  std::optional<std::string> model;  // as the client wrote it
  labels::Label label;               // confidentiality, integrity = "tainted", zones
  std::optional<Tier> max_tier;
};

// [[grant]]: opens T2 or T3 targets up to a confidentiality. For T3 it names one target or one provider.
struct Grant {
  Tier tier = Tier::t2;
  std::optional<std::string> provider;
  std::optional<std::string> target;
  labels::NameSet zones;               // the targets' zones that it opens
  std::vector<MemberPattern> members;  // empty: everybody (T3: must be given)
  labels::Confidentiality max_confidentiality = labels::Confidentiality::public_;
  std::optional<std::chrono::system_clock::time_point> expires;  // inert from then on (dates: from 0:00 UTC)
};

struct Rules {
  static constexpr std::size_t max_rules = 4096;  // pins, and grants
  Defaults defaults;
  std::vector<Pin> pins;
  std::vector<Grant> grants;
};

// Refuses (config_invalid, with the key) what rules may never say, however they were made: a default ceiling
// above T1, a wildcard, a grant for T0 or T1, a T3 grant that names neither target nor provider, or no member,
// or lets more than public pass.
Result<void> validate(const Rules& rules);
Result<void> validate(const Defaults& defaults);
Result<void> validate(const Pin& pin);
Result<void> validate(const Grant& grant);

// Reads [defaults], [[pin]] and [[grant]] of the document's root. Mistakes become the document's problems;
// the returned rules are meant for use only when there are none.
Rules read_rules(config::Section& root);

}  // namespace molly::policy
