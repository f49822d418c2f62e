#pragma once

#include <array>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "audit/record.h"

// Shared by the sources of this folder.
namespace molly::audit {

template <std::unsigned_integral Integer>
void put(std::string& out, Integer value) {
  for (std::size_t i = 0; i < sizeof(Integer); ++i) out.push_back(static_cast<char>(value >> (8 * i) & 255));
}

template <std::size_t size>
void put(std::string& out, const std::array<std::uint8_t, size>& bytes) {
  out.append(reinterpret_cast<const char*>(bytes.data()), size);
}

// As encode, appended to a buffer that the log uses again and again.
void encode_to(std::string& out, std::uint64_t sequence, std::chrono::system_clock::time_point time,
               const Record& record);

// The length that the texts' own lengths give to a body of which perhaps only the beginning is there;
// nothing while it does not reach to the last text's length.
std::optional<std::size_t> implied_length(std::string_view partial_body);

// No text is longer than Record::max_text.
bool is_encodable(const Record& record);

}  // namespace molly::audit
