#include "pipeline/caller.h"

namespace molly::pipeline {
namespace {

constexpr std::size_t max_application_bytes = 64;

template <class T>
Result<std::optional<T>> parse_declared(std::optional<std::string_view> text, auto parse, std::string_view header,
                                        std::string_view choices) {
  if (!text) return std::optional<T>();
  if (auto value = parse(*text)) return std::optional<T>(std::move(*value));
  return failure(ErrorCode::invalid_request, "header " + std::string(header) + " must be " + std::string(choices),
                 std::string(header));
}

}  // namespace

Result<Caller> parse_caller(std::optional<std::string_view> application,
                            std::optional<std::string_view> confidentiality, std::optional<std::string_view> zones,
                            std::optional<std::string_view> max_tier, std::optional<std::string_view> carried) {
  Caller caller;
  if (application) {
    if (application->size() > max_application_bytes) {
      return failure(ErrorCode::invalid_request, "header x-molly-application is longer than 64 bytes",
                     "x-molly-application");
    }
    caller.application = *application;
  }
  auto declared =
      parse_declared<labels::Confidentiality>(confidentiality, labels::parse_confidentiality, "x-molly-confidentiality",
                                              "public, internal, confidential or secret");
  if (!declared) return std::unexpected(declared.error());
  caller.confidentiality = *declared;
  if (zones) {
    auto parsed = labels::parse_name_set(*zones);
    if (!parsed) {
      return failure(ErrorCode::invalid_request, "header x-molly-zones must be a list of zones such as device,lan",
                     "x-molly-zones");
    }
    caller.zones = std::move(*parsed);
  }
  auto tier = parse_declared<Tier>(max_tier, parse_tier, "x-molly-max-tier", "T0, T1, T2 or T3");
  if (!tier) return std::unexpected(tier.error());
  caller.max_tier = *tier;
  if (carried) {
    auto parsed = policy::parse_carried(*carried);
    if (!parsed) return std::unexpected(Error{ErrorCode::invalid_request, parsed.error().message, "x-molly-clearance"});
    caller.carried = std::move(*parsed);
  }
  return caller;
}

policy::SovereigntyProfile sovereignty_profile(const Caller& caller, std::string_view model) {
  policy::SovereigntyProfile profile;
  profile.label.zones = caller.zones;
  profile.declared = caller.confidentiality;
  profile.max_tier = caller.max_tier;
  profile.application = caller.application;
  profile.model = model;
  profile.carried = caller.carried;
  if (caller.key) {
    profile.member = caller.key->member;
    profile.roles = caller.key->roles;
    const auto& ceiling = caller.key->scope.max_tier;
    if (ceiling && (!profile.max_tier || *ceiling < *profile.max_tier)) profile.max_tier = ceiling;
  }
  return profile;
}

}  // namespace molly::pipeline
