#include "core/tier.h"

namespace molly {

std::string_view to_string(Tier tier) {
  static constexpr std::array<std::string_view, 4> names{"T0", "T1", "T2", "T3"};
  return names[static_cast<std::size_t>(tier)];
}

std::optional<Tier> parse_tier(std::string_view text) {
  if (!text.empty() && (text.front() == 'T' || text.front() == 't')) text.remove_prefix(1);
  if (text.size() != 1 || text[0] < '0' || text[0] > '3') return std::nullopt;
  return static_cast<Tier>(text[0] - '0');
}

}  // namespace molly
