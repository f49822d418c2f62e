#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "traces/record.h"

// The compact form on the disk: one payload is a kind, then its fields; whole numbers are varints, texts have
// their length in front. A record begins with its trace id and its catalogue's id at fixed places, so that
// looking for one decodes nothing else.
namespace molly::traces {

enum class PayloadKind : std::uint8_t { catalogue = 1, record = 2 };

inline constexpr std::size_t longest_text = 1'000;
inline constexpr std::size_t longest_list = 4'096;

// 64 well-mixed bits of the bytes: an identity and a checksum, no defence against an attacker.
std::uint64_t hash(std::string_view bytes);

std::string encode_catalogue(const Catalogue& catalogue);
std::optional<Catalogue> decode_catalogue(std::string_view payload);

// Keeps its buffer from one record to the next.
class RecordEncoder {
 public:
  // Valid until the next call.
  std::string_view encode(const DecisionRecord& record);

 private:
  std::string buffer_;
};

// What stands at fixed places of a record's payload.
struct RecordHead {
  std::array<std::uint8_t, 16> trace{};
  std::uint64_t catalogue = 0;
};
std::optional<PayloadKind> kind_of(std::string_view payload);
std::optional<RecordHead> decode_head(std::string_view payload);

// Nothing where the payload is no record, or one of a form that this version does not know.
std::optional<DecisionRecord> decode_record(std::string_view payload, const SharedCatalogue& catalogue);

}  // namespace molly::traces
