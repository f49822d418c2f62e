#include <array>

#include "config/section.h"
#include "policy/rules.h"

namespace molly::policy {
namespace {

constexpr std::array<std::string_view, 4> tiers{"T0", "T1", "T2", "T3"};
constexpr std::array<std::string_view, 4> confidentialities{"public", "internal", "confidential", "secret"};
constexpr std::array<std::string_view, 2> integrities{"trusted", "tainted"};

std::optional<Tier> read_tier(config::Section& section, std::string_view key) {
  const auto text = section.choice(key, tiers);
  return text ? parse_tier(*text) : std::nullopt;
}

std::optional<labels::Confidentiality> read_confidentiality(config::Section& section, std::string_view key) {
  const auto text = section.choice(key, confidentialities);
  return text ? labels::parse_confidentiality(*text) : std::nullopt;
}

labels::NameSet read_zones(config::Section& section) {
  const auto names = section.texts("zones");
  if (!names) return labels::NameSet::all();
  for (const std::string& name : *names)
    if (!labels::is_name(name)) section.refuse("zones", "a zone is 1 to 64 letters, digits or characters of \"._:@-\"");
  if (names->size() > labels::NameSet::max_names) section.refuse("zones", "at most 64 zones");
  return labels::NameSet::of(*names);
}

std::vector<MemberPattern> read_members(config::Section& section) {
  std::vector<MemberPattern> members;
  const auto texts = section.texts("members");
  if (texts && texts->empty()) section.refuse("members", "an empty list grants nobody anything: leave the grant out");
  for (const std::string& text : texts.value_or(std::vector<std::string>{})) {
    const bool is_role = text.starts_with("role:");
    members.push_back({is_role, is_role ? text.substr(5) : text});
  }
  return members;
}

void refuse_invalid(config::Section& section, const Result<void>& valid) {
  if (!valid) section.refuse(valid.error().field, valid.error().message);
}

Defaults read_defaults(config::Section section) {
  Defaults defaults;
  defaults.max_tier = read_tier(section, "max_tier").value_or(defaults.max_tier);
  defaults.confidentiality = read_confidentiality(section, "confidentiality").value_or(defaults.confidentiality);
  refuse_invalid(section, validate(defaults));
  return defaults;
}

Pin read_pin(config::Section section) {
  Pin pin;
  config::Section match = section.table("match");
  pin.application = match.text("application");
  pin.member = match.text("member");
  pin.role = match.text("role");
  pin.model = match.text("model");
  pin.label.confidentiality = read_confidentiality(section, "confidentiality").value_or(pin.label.confidentiality);
  if (section.choice("integrity", integrities) == "tainted") pin.label.integrity = labels::Integrity::tainted;
  pin.label.zones = read_zones(section);
  pin.max_tier = read_tier(section, "max_tier");
  refuse_invalid(section, validate(pin));
  return pin;
}

Grant read_grant(config::Section section) {
  Grant grant;
  if (!section.has("tier")) section.refuse("tier", "a grant says which tier it opens: \"T2\" or \"T3\"");
  const auto tier = read_tier(section, "tier");
  grant.provider = section.text("provider");
  grant.target = section.text("target");
  grant.zones = read_zones(section);
  grant.members = read_members(section);
  grant.max_confidentiality =
      read_confidentiality(section, "max_confidentiality").value_or(labels::Confidentiality::public_);
  if (const auto date = section.date("expires")) grant.expires = std::chrono::sys_days(*date);
  if (section.has("redact")) {
    section.texts("redact");
    section.refuse("redact", "detectors do not exist yet, so nothing can be redacted");
  }
  if (!tier) return grant;
  grant.tier = *tier;
  refuse_invalid(section, validate(grant));
  return grant;
}

}  // namespace

Rules read_rules(config::Section& root) {
  Rules rules;
  rules.defaults = read_defaults(root.table("defaults"));
  for (const config::Section& section : root.tables("pin")) rules.pins.push_back(read_pin(section));
  for (const config::Section& section : root.tables("grant")) rules.grants.push_back(read_grant(section));
  if (rules.pins.size() > Rules::max_rules) root.refuse("pin", "too many pins");
  if (rules.grants.size() > Rules::max_rules) root.refuse("grant", "too many grants");
  return rules;
}

}  // namespace molly::policy
