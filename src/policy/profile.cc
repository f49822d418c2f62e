#include "policy/profile.h"

#include <array>
#include <utility>

namespace molly::policy {
namespace {

// The value of "key=value", or of "key=" at the text's end; nothing when another key stands there.
std::optional<std::string_view> take(std::string_view& text, std::string_view key) {
  if (!text.starts_with(key)) return std::nullopt;
  const std::size_t end = text.find(';');
  const std::string_view value = text.substr(key.size(), end == text.npos ? end : end - key.size());
  text = end == text.npos ? std::string_view() : text.substr(end + 1);
  return value;
}

std::optional<CarriedClearance> parse(std::string_view text) {
  const auto tier = take(text, "tier=");
  const auto zones = take(text, "zones=");
  const auto providers = take(text, "providers=");
  const auto declared = take(text, "declared=");
  const auto label = text.starts_with("label=") ? std::optional(text.substr(6)) : std::nullopt;
  if (!tier || !zones || !providers || !declared || !label) return std::nullopt;
  const auto max_tier = parse_tier(*tier);
  auto zone_set = labels::parse_name_set(*zones);
  auto provider_set = labels::parse_name_set(*providers);
  auto parsed_label = labels::parse_label(*label);
  const bool known = *declared == "public" || *declared == "no";
  if (!max_tier || !zone_set || !provider_set || !known || !parsed_label) return std::nullopt;
  return CarriedClearance{*max_tier, std::move(*zone_set), std::move(*provider_set), *declared == "public",
                          std::move(*parsed_label)};
}

}  // namespace

std::string serialise(const CarriedClearance& carried) {
  std::string text = "tier=";
  text.append(to_string(carried.max_tier));
  text.append(";zones=").append(to_string(carried.zones));
  text.append(";providers=").append(to_string(carried.providers));
  text.append(carried.declared_public ? ";declared=public" : ";declared=no");
  text.append(";label=").append(to_string(carried.label));
  return text;
}

Result<CarriedClearance> parse_carried(std::string_view text) {
  if (auto carried = parse(text)) return std::move(*carried);
  return failure(ErrorCode::invalid_request, "The clearance that the sending Molly put on this request cannot be read.",
                 "x-molly-clearance");
}

}  // namespace molly::policy
