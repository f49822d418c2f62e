#include "traces/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "samples.h"
#include "traces/encoding.h"

namespace molly::traces {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(DecisionRecord, survives_its_encoding_whole) {
  const auto record = sample_record();
  RecordEncoder encoder;
  const auto decoded = decode_record(encoder.encode(record), record.catalogue);
  ASSERT_TRUE(decoded.has_value());
  // Rendering shows every field but the trace's bytes.
  EXPECT_EQ(to_json(*decoded), to_json(record));
  EXPECT_EQ(decoded->trace, record.trace);
  EXPECT_EQ(decoded->time, record.time);
  EXPECT_EQ(decoded->targets, record.targets);
  EXPECT_EQ(decoded->attempts, record.attempts);
}

TEST(DecisionRecord, keeps_every_outcome_of_an_attempt) {
  DecisionRecord record = sample_record();
  record.attempts.clear();
  for (int code = 0; code <= static_cast<int>(AttemptOutcome::too_long); ++code) {
    record.attempts.push_back({0, static_cast<AttemptOutcome>(code), 0, 0});
  }
  RecordEncoder encoder;
  const auto decoded = decode_record(encoder.encode(record), record.catalogue);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->attempts, record.attempts);
}

TEST(DecisionRecord, is_small) {
  RecordEncoder encoder;
  EXPECT_LT(encoder.encode(sample_record()).size(), 160U);
}

TEST(DecisionRecord, without_anything_survives_too) {
  RecordEncoder encoder;
  const DecisionRecord nothing;
  const auto decoded = decode_record(encoder.encode(nothing), nothing.catalogue);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->final_target, no_target);
  EXPECT_EQ(to_json(*decoded), to_json(nothing));
}

TEST(DecisionRecord, with_endless_text_is_shortened) {
  auto record = sample_record();
  record.model = std::string(100'000, 'x');
  record.dropped.assign(10'000, "y");
  RecordEncoder encoder;
  const auto decoded = decode_record(encoder.encode(record), record.catalogue);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->model.size(), longest_text);
  EXPECT_EQ(decoded->dropped.size(), longest_list);
}

TEST(DecisionRecord, that_was_damaged_is_no_record_or_renders_without_harm) {
  RecordEncoder encoder;
  const auto record = sample_record();
  const std::string whole(encoder.encode(record));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(decode_record(std::string_view(whole).substr(0, size), record.catalogue).has_value()) << size;
  }
  std::mt19937 random(7);
  for (int round = 0; round < 20'000; ++round) {
    std::string damaged = whole;
    for (int change = 0; change < 3; ++change)
      damaged[1 + random() % (damaged.size() - 1)] = static_cast<char>(random());
    if (const auto decoded = decode_record(damaged, record.catalogue)) {
      EXPECT_FALSE(to_json(*decoded).empty());
      EXPECT_FALSE(to_text(*decoded).empty());
    }
  }
}

TEST(Catalogue, survives_its_encoding) {
  const auto catalogue = sample_catalogue();
  EXPECT_EQ(decode_catalogue(catalogue.encoded()), *catalogue);
  EXPECT_EQ(catalogue.id(), hash(catalogue.encoded()));
  EXPECT_NE(catalogue.id(), SharedCatalogue().id());
}

TEST(DecisionRecord, tells_the_whole_decision_to_people) {
  const auto record = sample_record();
  EXPECT_EQ(to_text(record), record.trace.text() +
                                 R"(  2027-03-01T12:00:00Z  failed_midstream after 812 ms by office (T1)
asked      chat, streamed, model "auto"
by         ana (key 0a1b2c3d), application "clinic"
needs      text, image; at most 70000 tokens (counted: 12345); tools; structured output
may        internal/trusted/*/*; at most T1
policy     abababababababab
targets
  - nano (T0): it does not read images
  + office (T1): cleared
  - acme (T3): the request is more confidential than what may go there [grant 1 (molly.toml:20) is for public data]
route
  1. office: ready
attempts
  office: http error after 12 ms (HTTP 503)
  office: answered after 790 ms (HTTP 200)
usage      12345 tokens in, 67 out
dropped    logit_bias, seed
error      upstream_failed
)");
}

TEST(DecisionRecord, is_one_json_object_for_programs) {
  const auto json = to_json(sample_record());
  EXPECT_THAT(json, HasSubstr(R"("time":"2027-03-01T12:00:00Z","milliseconds":812,"outcome":"failed_midstream")"));
  EXPECT_THAT(
      json,
      HasSubstr(R"("capability":{"modalities":["text","image"],"token_upper_bound":70000,"exact_tokens":12345,)"));
  EXPECT_THAT(json, HasSubstr(R"({"target":"acme","tier":"T3","verdict":"confidentiality","why":")"));
  EXPECT_THAT(json, HasSubstr(R"("rule":"grant 1 (molly.toml:20) is for public data"})"));
  EXPECT_THAT(json, HasSubstr(R"("final":{"target":"office","tier":"T1"})"));
  EXPECT_THAT(json, HasSubstr(R"("dropped":["logit_bias","seed"]})"));
}

TEST(DecisionRecord, without_its_catalogue_still_tells_numbers) {
  auto record = sample_record();
  record.catalogue = SharedCatalogue();
  EXPECT_THAT(to_text(record), HasSubstr("- target 3 (?): the request is more confidential"));
}

}  // namespace
}  // namespace molly::traces
