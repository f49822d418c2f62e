#include "audit/record.h"

#include <array>
#include <cstring>
#include <type_traits>

#include "audit/encoding.h"

namespace molly::audit {
namespace {

constexpr std::uint8_t version = 1;
constexpr std::uint8_t no_tier = 255;

std::uint8_t tier_byte(const Record& record) { return record.tier ? static_cast<std::uint8_t>(*record.tier) : no_tier; }

// Reads what encode_to wrote; after the first mistake every further read fails too.
class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : rest_(bytes) {}

  template <class Integer>
  Integer integer() {
    if (!take(sizeof(Integer))) return {};
    Integer value{};
    for (std::size_t i = 0; i < sizeof(Integer); ++i)
      value = static_cast<Integer>(value | static_cast<Integer>(static_cast<std::uint8_t>(taken_[i])) << (8 * i));
    return value;
  }

  template <std::size_t size>
  std::array<std::uint8_t, size> array() {
    std::array<std::uint8_t, size> value{};
    if (take(size)) std::memcpy(value.data(), taken_.data(), size);
    return value;
  }

  std::string text() {
    const auto size = integer<std::uint16_t>();
    good_ = good_ && size <= Record::max_text;
    return take(size) ? std::string(taken_) : std::string();
  }

  bool require(bool condition) { return good_ = good_ && condition; }
  bool finished() const { return good_ && rest_.empty(); }

 private:
  bool take(std::size_t size) {
    if (!require(rest_.size() >= size)) return false;
    taken_ = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }

  std::string_view rest_;
  std::string_view taken_;
  bool good_ = true;
};

std::optional<TraceId> decode_trace(Decoder& in) {
  const auto present = in.integer<std::uint8_t>();
  const auto bytes = in.array<16>();
  in.require(present == 1 || (present == 0 && bytes == std::array<std::uint8_t, 16>{}));
  if (present == 0) return std::nullopt;
  return TraceId::from_bytes(bytes);
}

std::optional<Tier> decode_tier(Decoder& in) {
  const auto tier = in.integer<std::uint8_t>();
  in.require(tier <= 3 || tier == no_tier);
  if (tier > 3) return std::nullopt;
  return static_cast<Tier>(tier);
}

Counts decode_counts(Decoder& in) {
  Counts counts;
  counts.bytes_in = in.integer<std::uint64_t>();
  counts.bytes_out = in.integer<std::uint64_t>();
  counts.prompt_tokens = in.integer<std::uint64_t>();
  counts.completion_tokens = in.integer<std::uint64_t>();
  return counts;
}

}  // namespace

std::string_view to_string(Kind kind) {
  static constexpr std::array<std::string_view, 12> names{
      "unknown",  "opened",  "closed",      "gap",         "admitted",      "refused",
      "dispatch", "outcome", "key_created", "key_revoked", "policy_loaded", "config_refused"};
  const auto index = static_cast<std::size_t>(kind);
  return index < names.size() ? names[index] : names[0];
}

void encode_to(std::string& out, std::uint64_t sequence, std::chrono::system_clock::time_point time,
               const Record& record) {
  using std::chrono::duration_cast, std::chrono::nanoseconds;
  put(out, version);
  put(out, sequence);
  put(out, static_cast<std::uint64_t>(duration_cast<nanoseconds>(time.time_since_epoch()).count()));
  put(out, static_cast<std::uint8_t>(record.kind));
  put(out, static_cast<std::uint8_t>(record.trace ? 1 : 0));
  put(out, record.trace ? record.trace->bytes() : std::array<std::uint8_t, 16>{});
  put(out, tier_byte(record));
  put(out, record.policy);
  put(out, record.payload);
  put(out, record.counts.bytes_in);
  put(out, record.counts.bytes_out);
  put(out, record.counts.prompt_tokens);
  put(out, record.counts.completion_tokens);
  for (const std::string* text : {&record.key_id, &record.label, &record.target, &record.outcome}) {
    put(out, static_cast<std::uint16_t>(text->size()));
    out += *text;
  }
}

std::optional<std::size_t> implied_length(std::string_view partial_body) {
  constexpr std::size_t before_texts = 1 + 8 + 8 + 1 + 1 + 16 + 1 + 32 + 32 + 4 * 8;
  std::size_t length = before_texts;
  for (int text = 0; text < 4; ++text) {
    if (partial_body.size() < length + 2) return std::nullopt;
    length += 2 + static_cast<std::uint8_t>(partial_body[length]) +
              256u * static_cast<std::uint8_t>(partial_body[length + 1]);
  }
  return length;
}

bool is_encodable(const Record& record) {
  for (const std::string* text : {&record.key_id, &record.label, &record.target, &record.outcome})
    if (text->size() > Record::max_text) return false;
  return true;
}

std::string encode(std::uint64_t sequence, std::chrono::system_clock::time_point time, const Record& record) {
  std::string out;
  encode_to(out, sequence, time, record);
  return out;
}

Result<Entry> decode(std::string_view bytes) {
  using std::chrono::duration_cast, std::chrono::nanoseconds, std::chrono::system_clock;
  Decoder in(bytes);
  Entry entry;
  Record& record = entry.record;
  in.require(in.integer<std::uint8_t>() == version);
  entry.sequence = in.integer<std::uint64_t>();
  entry.time = system_clock::time_point(
      duration_cast<system_clock::duration>(nanoseconds(static_cast<std::int64_t>(in.integer<std::uint64_t>()))));
  const auto kind = in.integer<std::uint8_t>();
  in.require(kind >= static_cast<std::uint8_t>(Kind::opened) &&
             kind <= static_cast<std::uint8_t>(Kind::config_refused));
  record.kind = static_cast<Kind>(kind);
  record.trace = decode_trace(in);
  record.tier = decode_tier(in);
  record.policy = in.array<32>();
  record.payload = in.array<32>();
  record.counts = decode_counts(in);
  for (std::string* text : {&record.key_id, &record.label, &record.target, &record.outcome}) *text = in.text();
  if (!in.finished()) return failure(ErrorCode::io_failed, "An audit record is not in canonical form.");
  return entry;
}

}  // namespace molly::audit
