#include "audit/verify.h"

#include "log_fixture.h"

namespace molly::audit {
namespace {

class VerifyTest : public AuditTest {
 protected:
  // Three segments with a few records each.
  void write_log() {
    Results results;
    const auto log = open({.segment_bytes = 700});
    for (int i = 0; i < 8; ++i) {
      log->append_synced(dispatch("target" + std::to_string(i)), results.receiver());
      results.wait_for(1);
    }
  }

  // Where each record of a segment starts, and the end.
  std::vector<std::size_t> record_offsets(const std::string& bytes) const {
    std::vector<std::size_t> offsets{64};
    while (offsets.back() < bytes.size()) {
      std::size_t length = 0;
      for (std::size_t i = 0; i < 4; ++i)
        length |= static_cast<std::size_t>(static_cast<unsigned char>(bytes[offsets.back() + i])) << (8 * i);
      offsets.push_back(offsets.back() + 4 + length + 32);
    }
    return offsets;
  }
};

TEST_F(VerifyTest, an_untouched_log_is_intact) {
  write_log();
  const Report report = verified();
  EXPECT_TRUE(report.intact());
  EXPECT_EQ(report.records, 10);
  EXPECT_GE(report.segments, 3);
  EXPECT_EQ(report.head, entries().back().hash);
}

TEST_F(VerifyTest, every_flipped_bit_of_every_byte_is_found) {
  write_log();
  for (int number = 1; number <= 3; ++number) {
    const std::string whole = read_all(segment(number));
    for (std::size_t at = 0; at < whole.size(); ++at) {
      std::string altered = whole;
      altered[at] = static_cast<char>(altered[at] ^ 1 << at % 8);
      write_all(segment(number), altered);
      ASSERT_FALSE(verified().intact()) << "segment " << number << " byte " << at;
    }
    write_all(segment(number), whole);
  }
  EXPECT_TRUE(verified().intact());
}

TEST_F(VerifyTest, a_removed_record_is_found) {
  write_log();
  const std::string whole = read_all(segment(2));
  const auto offsets = record_offsets(whole);
  ASSERT_GE(offsets.size(), 3);
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    write_all(segment(2), whole.substr(0, offsets[i]) + whole.substr(offsets[i + 1]));
    EXPECT_FALSE(verified().intact()) << i;
  }
}

TEST_F(VerifyTest, swapped_records_are_found) {
  write_log();
  const std::string whole = read_all(segment(2));
  const auto at = record_offsets(whole);
  ASSERT_GE(at.size(), 3);
  write_all(segment(2), whole.substr(0, at[0]) + whole.substr(at[1], at[2] - at[1]) +
                            whole.substr(at[0], at[1] - at[0]) + whole.substr(at[2]));
  EXPECT_FALSE(verified().intact());
}

TEST_F(VerifyTest, a_segment_cut_anywhere_before_the_last_is_found) {
  write_log();
  const std::string whole = read_all(segment(1));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_all(segment(1), whole.substr(0, size));
    ASSERT_FALSE(verified().intact()) << size;
  }
}

TEST_F(VerifyTest, a_missing_segment_is_found) {
  for (const int number : {1, 2}) {
    std::filesystem::remove_all(folder_);
    write_log();
    std::filesystem::remove(segment(number));
    const Report report = verified();
    ASSERT_FALSE(report.intact());
    EXPECT_NE(report.first_bad->why.find("missing"), std::string::npos);
  }
}

TEST_F(VerifyTest, swapped_segments_are_found) {
  write_log();
  const std::string second = read_all(segment(2));
  write_all(segment(2), read_all(segment(3)));
  write_all(segment(3), second);
  EXPECT_FALSE(verified().intact());
}

TEST_F(VerifyTest, the_report_says_where_and_which_record) {
  write_log();
  std::string bytes = read_all(segment(1));
  const auto offsets = record_offsets(bytes);
  bytes[offsets[1] + 60] ^= 1;
  write_all(segment(1), bytes);
  const Report report = verified();
  ASSERT_TRUE(report.first_bad);
  EXPECT_EQ(report.records, 1);
  EXPECT_EQ(report.first_bad->sequence, 2);
  EXPECT_EQ(report.first_bad->offset, offsets[1]);
  EXPECT_EQ(report.first_bad->file, "00000001.audit");
}

TEST_F(VerifyTest, reading_can_start_in_a_later_segment) {
  write_log();
  auto reader = Reader::open(folder_, 9);
  ASSERT_TRUE(reader);
  const auto first = reader->next();
  ASSERT_TRUE(first && *first);
  EXPECT_EQ((*first)->sequence, 9);
  EXPECT_EQ((*first)->record.target, "target7");
}

TEST_F(VerifyTest, reading_stops_with_an_error_at_damage) {
  write_log();
  std::string bytes = read_all(segment(1));
  bytes.back() ^= 1;
  write_all(segment(1), bytes);
  auto reader = Reader::open(folder_);
  ASSERT_TRUE(reader);
  auto entry = reader->next();
  while (entry && *entry) entry = reader->next();
  ASSERT_FALSE(entry);
  EXPECT_EQ(entry.error().code, ErrorCode::io_failed);
}

TEST_F(VerifyTest, an_empty_folder_is_an_empty_log) {
  std::filesystem::create_directories(folder_);
  EXPECT_EQ(verified().records, 0);
  EXPECT_TRUE(verified().intact());
}

}  // namespace
}  // namespace molly::audit
