#include "core/ids.h"

#include <chrono>
#include <random>

namespace molly {
namespace {

constexpr std::string_view crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
__extension__ using Uint128 = unsigned __int128;

constexpr std::string_view prefix = "tr_";

std::uint64_t random_bits() {
  thread_local std::mt19937_64 generator{[] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device(), device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }()};
  return generator();
}

}  // namespace

TraceId TraceId::generate() {
  using namespace std::chrono;
  const auto now =
      static_cast<std::uint64_t>(duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count());
  std::array<std::uint8_t, 16> bytes{};
  for (std::size_t i = 0; i < 6; ++i) bytes[i] = static_cast<std::uint8_t>(now >> (40 - 8 * i));
  const std::uint64_t high = random_bits();
  const std::uint64_t low = random_bits();
  for (std::size_t i = 0; i < 8; ++i) bytes[6 + i] = static_cast<std::uint8_t>(high >> (8 * i));
  for (std::size_t i = 0; i < 2; ++i) bytes[14 + i] = static_cast<std::uint8_t>(low >> (8 * i));
  return TraceId(bytes);
}

// 128 bits are 26 digits of 5 bits with 2 bits of zero padding in front.
std::string TraceId::text() const {
  std::string out(prefix);
  out.resize(prefix.size() + 26);
  Uint128 value = 0;
  for (const std::uint8_t byte : bytes_) value = value << 8 | byte;
  for (std::size_t i = 0; i < 26; ++i) {
    out[prefix.size() + 25 - i] = crockford[static_cast<std::size_t>(value & 31)];
    value >>= 5;
  }
  return out;
}

std::optional<TraceId> TraceId::parse(std::string_view text) {
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  if (text.size() != 26 || text[0] > '7') return std::nullopt;
  Uint128 value = 0;
  for (const char c : text) {
    const auto digit = crockford.find(c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c);
    if (digit == std::string_view::npos) return std::nullopt;
    value = value << 5 | digit;
  }
  std::array<std::uint8_t, 16> bytes{};
  for (std::size_t i = 0; i < 16; ++i) bytes[15 - i] = static_cast<std::uint8_t>(value >> (8 * i));
  return TraceId(bytes);
}

std::uint64_t TraceId::unix_milliseconds() const {
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < 6; ++i) out = out << 8 | bytes_[i];
  return out;
}

std::string hex(const Digest& digest) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  out.reserve(digest.size() * 2);
  for (const std::uint8_t byte : digest) {
    out.push_back(digits[byte >> 4]);
    out.push_back(digits[byte & 15]);
  }
  return out;
}

}  // namespace molly
