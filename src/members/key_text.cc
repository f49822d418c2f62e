#include "members/key_text.h"

#include <sodium.h>

namespace molly::members {
namespace {

constexpr std::string_view prefix = "molly_";
constexpr std::size_t id_size = 8;
constexpr std::size_t secret_size = 43;
constexpr std::size_t checksum_size = 6;
constexpr std::size_t hashed_size = id_size + 1 + secret_size;
constexpr std::size_t key_size = prefix.size() + hashed_size + 1 + checksum_size;

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value & 1) != 0 ? value >> 1 ^ 0xEDB88320U : value >> 1;
    table[i] = value;
  }
  return table;
}
constexpr auto crc_table = make_crc_table();

std::uint32_t crc32(std::string_view text) {
  std::uint32_t value = 0xFFFFFFFFU;
  for (const char c : text) value = crc_table[(value ^ static_cast<std::uint8_t>(c)) & 0xFF] ^ value >> 8;
  return ~value;
}

std::array<char, checksum_size> checksum(std::string_view text) {
  static constexpr std::string_view digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  std::array<char, checksum_size> out{};
  std::uint32_t value = crc32(text);
  for (std::size_t i = checksum_size; i-- > 0; value /= 62) out[i] = digits[value % 62];
  return out;
}

}  // namespace

ParsedKey parse_key(std::string_view text) {
  if (!text.starts_with(prefix)) return {std::nullopt, KeyFault::not_a_key};
  // It was meant as one: whatever else is wrong, a sign was lost or changed.
  if (text.size() != key_size) return {std::nullopt, KeyFault::mistyped};
  const auto sum = checksum(text.substr(0, prefix.size() + hashed_size));
  const auto id = parse_key_id(text.substr(prefix.size(), id_size));
  const bool fits = text.substr(key_size - checksum_size) == std::string_view(sum.data(), sum.size()) &&
                    text[prefix.size() + id_size] == '_' && text[prefix.size() + hashed_size] == '_';
  if (!fits || !id) return {std::nullopt, KeyFault::mistyped};
  return {KeyText{*id, text.substr(prefix.size(), hashed_size)}, {}};
}

base::Secret format_key(std::uint32_t id, const SecretBytes& secret) {
  std::string text(prefix);
  text.reserve(key_size + 1);  // no second copy of the secret on the heap
  text += format_key_id(id) + "_";
  char encoded[secret_size + 1];
  sodium_bin2base64(encoded, sizeof encoded, secret.data(), secret.size(), sodium_base64_VARIANT_URLSAFE_NO_PADDING);
  text.append(encoded, secret_size);
  base::wipe(encoded, sizeof encoded);
  const auto sum = checksum(text);
  text += '_';
  text.append(sum.data(), sum.size());
  return base::Secret::take(text);
}

std::string format_key_id(std::uint32_t id) {
  std::string out(id_size, '0');
  for (std::size_t i = id_size; i-- > 0; id >>= 4) out[i] = "0123456789abcdef"[id & 15];
  return out;
}

std::optional<std::uint32_t> parse_key_id(std::string_view text) {
  if (text.size() != id_size || text.find_first_not_of("0123456789abcdef") != std::string_view::npos)
    return std::nullopt;
  std::uint32_t id = 0;
  std::from_chars(text.data(), text.data() + text.size(), id, 16);
  return id;
}

}  // namespace molly::members
