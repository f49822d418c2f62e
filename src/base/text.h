#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace molly::base {

// Levenshtein distance in bytes, with a swap of two neighbours as one step.
std::size_t edit_distance(std::string_view left, std::string_view right);

// The candidate that a person most likely meant by `word`: at most a third of its letters away (and at
// least one); the first of equals.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

// "64KiB", "32 MiB", "1.5GiB", "1048576", "10MB" (powers of 1000): bytes. Nothing below zero, no overflow.
std::optional<std::uint64_t> parse_size(std::string_view text);

// "500ms", "30s", "10m", "2h", "7d". A bare number has no unit and is refused.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

// "256 MiB", "1.5 GiB", "17 bytes".
std::string human_size(std::uint64_t bytes);

// "500 ms", "1.5 s", "10 min", "2 h", "7 d".
std::string human_duration(std::chrono::milliseconds duration);

// "2027-03-01T12:00:00Z".
std::string iso_time(std::chrono::sys_time<std::chrono::milliseconds> time);

}  // namespace molly::base
