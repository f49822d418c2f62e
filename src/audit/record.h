#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/ids.h"
#include "core/tier.h"

namespace molly::audit {

enum class Kind : std::uint8_t {
  opened = 1,  // the log was opened; outcome "new", "clean", "unclean" or "torn" (bytes_in: bytes dropped)
  closed,      // the log was closed in order
  gap,         // the disk failed for a while; bytes_in: requests served locally without a record
  admitted,    // policy gave a request a clearance
  refused,     // policy gave a request an empty clearance, or admission refused it
  dispatch,    // a payload is about to go to a target
  outcome,     // how a dispatch ended
  key_created,
  key_revoked,
  policy_loaded,   // payload: digest of the rules and targets now in force
  config_refused,  // a reload was wrong and the old configuration stays in force
};

std::string_view to_string(Kind kind);

struct Counts {
  std::uint64_t bytes_in = 0;   // bytes received from the target
  std::uint64_t bytes_out = 0;  // bytes sent to the target
  std::uint64_t prompt_tokens = 0;
  std::uint64_t completion_tokens = 0;
  bool operator==(const Counts&) const = default;
};

// What is written of one thing that happened. Never content: names, digests, codes and counts only.
// Texts longer than max_text are refused by Log::append.
struct Record {
  static constexpr std::size_t max_text = 8192;

  Kind kind = Kind::outcome;
  std::optional<TraceId> trace = std::nullopt;
  Digest policy{};     // digest of the policy in force; zeros: none
  std::string key_id;  // the member's key, by its public id; empty: local without a key
  std::string label;   // labels::to_string
  std::string target;
  std::optional<Tier> tier = std::nullopt;
  Digest payload{};     // SHA-256 of the bytes sent; zeros: none
  std::string outcome;  // a code such as "ok" or "upstream_failed"
  Counts counts;

  bool operator==(const Record&) const = default;
};

// A record as it stands in the log.
struct Entry {
  std::uint64_t sequence = 0;  // 1 for the first record ever; no number is left out
  std::chrono::system_clock::time_point time;
  Record record;
  Digest hash{};  // SHA-256 over the previous entry's hash and this entry's bytes

  bool operator==(const Entry&) const = default;
};

// The canonical binary form of an entry without its hash: every integer little-endian and of fixed width,
// every text behind its 16-bit length, nothing optional left out. One entry has exactly one encoding.
std::string encode(std::uint64_t sequence, std::chrono::system_clock::time_point time, const Record& record);
// The inverse; anything that encode would not have written is an error. The hash is left zero.
Result<Entry> decode(std::string_view bytes);

}  // namespace molly::audit
