#include "labels/label.h"

#include <algorithm>
#include <array>

namespace molly::labels {
namespace {

constexpr std::array<std::string_view, 4> confidentialities{"public", "internal", "confidential", "secret"};
constexpr std::array<std::string_view, 2> integrities{"trusted", "tainted"};

template <class Value, std::size_t size>
std::optional<Value> parse_one_of(const std::array<std::string_view, size>& names, std::string_view text) {
  const auto found = std::ranges::find(names, text);
  if (found == names.end()) return std::nullopt;
  return static_cast<Value>(found - names.begin());
}

std::string_view take_field(std::string_view& text) {
  const std::size_t end = text.find('/');
  const std::string_view field = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return field;
}

}  // namespace

std::string_view to_string(Confidentiality confidentiality) {
  return confidentialities[static_cast<std::size_t>(confidentiality)];
}

std::string_view to_string(Integrity integrity) { return integrities[static_cast<std::size_t>(integrity)]; }

std::optional<Confidentiality> parse_confidentiality(std::string_view text) {
  return parse_one_of<Confidentiality>(confidentialities, text);
}

std::optional<Integrity> parse_integrity(std::string_view text) { return parse_one_of<Integrity>(integrities, text); }

Label join(const Label& a, const Label& b) {
  return {std::max(a.confidentiality, b.confidentiality), std::max(a.integrity, b.integrity),
          intersection(a.zones, b.zones), intersection(a.readers, b.readers)};
}

bool flows_to(const Label& from, const Label& to) {
  return from.confidentiality <= to.confidentiality && from.integrity <= to.integrity &&
         is_subset(to.zones, from.zones) && is_subset(to.readers, from.readers);
}

std::string to_string(const Label& label) {
  std::string text(to_string(label.confidentiality));
  text.append("/").append(to_string(label.integrity));
  text.append("/").append(to_string(label.zones));
  text.append("/").append(to_string(label.readers));
  return text;
}

Result<Label> parse_label(std::string_view text) {
  if (std::ranges::count(text, '/') != 3)
    return failure(ErrorCode::invalid_request, "A label is confidentiality/integrity/zones/readers.");
  const auto confidentiality = parse_confidentiality(take_field(text));
  const auto integrity = parse_integrity(take_field(text));
  auto zones = parse_name_set(take_field(text));
  auto readers = parse_name_set(text);
  if (!confidentiality || !integrity)
    return failure(ErrorCode::invalid_request, "A label names an unknown confidentiality or integrity.");
  if (!zones) return std::unexpected(std::move(zones.error()));
  if (!readers) return std::unexpected(std::move(readers.error()));
  return Label{*confidentiality, *integrity, std::move(*zones), std::move(*readers)};
}

}  // namespace molly::labels
