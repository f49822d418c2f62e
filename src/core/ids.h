#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace molly {

// Names one request's life: 48 bits of Unix milliseconds, then 80 random bits, so that ids sort by time.
// Written as 26 characters of Crockford base 32 behind "tr_".
class TraceId {
 public:
  static TraceId generate();
  static std::optional<TraceId> parse(std::string_view text);

  std::string text() const;
  std::uint64_t unix_milliseconds() const;
  const std::array<std::uint8_t, 16>& bytes() const { return bytes_; }
  static TraceId from_bytes(const std::array<std::uint8_t, 16>& bytes) { return TraceId(bytes); }

  auto operator<=>(const TraceId&) const = default;

 private:
  explicit TraceId(const std::array<std::uint8_t, 16>& bytes) : bytes_(bytes) {}
  std::array<std::uint8_t, 16> bytes_;
};

// SHA-256 of the exact bytes of a payload, a policy or a record.
using Digest = std::array<std::uint8_t, 32>;

// Lower-case hexadecimal, two characters a byte.
std::string hex(const Digest& digest);

}  // namespace molly
