#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/secret.h"

// The written form of an access key: molly_<8 hex id>_<43 base64url of 256 bits>_<6 checksum>. The checksum is a
// CRC-32 in base 62: it tells a slip of the hand from a key that is not known, and guards against nobody.
namespace molly::members {

using SecretBytes = std::array<std::uint8_t, 32>;

struct KeyText {
  std::uint32_t id = 0;
  std::string_view hashed;  // the id and the secret, without prefix and checksum: what the stored hash is of
};

enum class KeyFault : std::uint8_t { not_a_key, mistyped };

// Views into `text`. No byte of the secret is compared with anything here.
struct ParsedKey {
  std::optional<KeyText> key;
  KeyFault fault = KeyFault::not_a_key;  // where there is no key
};
ParsedKey parse_key(std::string_view text);

base::Secret format_key(std::uint32_t id, const SecretBytes& secret);

// "0a1b2c3d", and back; nothing else is an id.
std::string format_key_id(std::uint32_t id);
std::optional<std::uint32_t> parse_key_id(std::string_view text);

}  // namespace molly::members
