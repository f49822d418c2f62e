#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace molly {

// Trust domain of execution, ordered by exposure: a higher tier exposes more.
enum class Tier : std::uint8_t {
  t0,  // this device
  t1,  // local network
  t2,  // remote, self-hosted
  t3,  // external API
};

inline constexpr std::array all_tiers{Tier::t0, Tier::t1, Tier::t2, Tier::t3};

// "T0" .. "T3".
std::string_view to_string(Tier tier);

// Accepts "T0", "t0" and "0"; nothing else.
std::optional<Tier> parse_tier(std::string_view text);

}  // namespace molly
