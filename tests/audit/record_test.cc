#include "audit/record.h"

#include "log_fixture.h"

namespace molly::audit {
namespace {

const auto a_time = std::chrono::system_clock::time_point(std::chrono::seconds(1'790'000'000));

TEST(AuditRecord, encoding_round_trips) {
  const auto decoded = decode(encode(42, a_time, dispatch()));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->sequence, 42);
  EXPECT_EQ(decoded->time, a_time);
  EXPECT_EQ(decoded->record, dispatch());
  EXPECT_EQ(decode(encode(1, a_time, Record{}))->record, Record{});
}

TEST(AuditRecord, every_shorter_or_longer_text_is_refused) {
  const std::string bytes = encode(42, a_time, dispatch());
  for (std::size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(decode(bytes.substr(0, size))) << size;
  EXPECT_FALSE(decode(bytes + '\0'));
}

TEST(AuditRecord, one_entry_has_one_encoding) {
  const std::string bytes = encode(42, a_time, dispatch());
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string altered = bytes;
      altered[at] = static_cast<char>(altered[at] ^ 1 << bit);
      const auto entry = decode(altered);
      if (!entry) continue;
      ASSERT_EQ(encode(entry->sequence, entry->time, entry->record), altered) << at;
    }
  }
}

TEST(AuditRecord, kinds_have_names) {
  EXPECT_EQ(to_string(Kind::opened), "opened");
  EXPECT_EQ(to_string(Kind::config_refused), "config_refused");
}

}  // namespace
}  // namespace molly::audit
