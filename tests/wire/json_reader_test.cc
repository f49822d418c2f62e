#include "wire/json_reader.h"

#include <gtest/gtest.h>

#include <glaze/json.hpp>

namespace molly::wire {
namespace {

bool accepts(std::string_view text) {
  JsonReader in(text);
  in.skip();
  in.expect_end();
  return in.ok();
}

std::string decoded(std::string_view text) {
  JsonReader in(text);
  std::string value = in.string();
  in.expect_end();
  return in.ok() ? value : "refused";
}

TEST(JsonReader, accepts_what_the_grammar_allows) {
  for (const char* text : {"null", " true ", "false", "0", "-0", "10", "-1.5e+10", "1E5", "\"\"", "[]", "[ 1 , 2 ]",
                           "{}", "{\"a\":{\"b\":[null]}}", "\"\\u0041\\n\\/\"", "\"\xF0\x9F\x98\x80\"", "\t\r\n{} "}) {
    EXPECT_TRUE(accepts(text)) << text;
    EXPECT_FALSE(glz::validate_json(std::string(text))) << "glaze disagrees: " << text;
  }
}

TEST(JsonReader, refuses_everything_else) {
  for (const char* text :
       {"",        " ",        "nul",        "nulll",   "True",        "01",       "-", "+1",   "1.",   ".5",    "1e",
        "0x1",     "NaN",      "\"",         "\"\\x\"", "\"\\u12g4\"", "\"a\nb\"", "[", "[1,]", "[,1]", "[1 2]", "{",
        "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}",   "{1:1}",       "{} {}",    "]", "'a'",  "[1]x"}) {
    EXPECT_FALSE(accepts(text)) << text;
  }
}

TEST(JsonReader, refuses_broken_utf8) {
  for (const char* bytes : {"\x80", "\xC0\x80", "\xC1\xBF", "\xC3", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
                            "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xE2\x82", "1234567\xE9"}) {
    EXPECT_FALSE(accepts("\"" + std::string(bytes) + "\"")) << bytes;
  }
}

TEST(JsonReader, decodes_escapes_and_pairs_and_refuses_halves) {
  EXPECT_EQ(decoded(R"("a\u00e9\ud83d\ude00\"\\\/\b\f\n\r\tz")"), "a\xC3\xA9\xF0\x9F\x98\x80\"\\/\b\f\n\r\tz");
  EXPECT_EQ(decoded(R"("\ud83d")"), "refused");
  EXPECT_EQ(decoded(R"("\ude00\ud83d")"), "refused");
  EXPECT_EQ(decoded(R"("\ud83dx")"), "refused");
  EXPECT_FALSE(accepts(R"({"skipped":["\ud83d"]})"));
}

TEST(JsonReader, finds_the_end_of_strings_of_every_length) {
  for (std::size_t length = 0; length < 40; ++length) {
    for (const char* special : {"", "\\\"", "\xC3\xA9", "\\\\"}) {
      const std::string text = "\"" + std::string(length, 'a') + special + std::string(length % 9, 'b') + "\"";
      EXPECT_TRUE(accepts(text)) << text;
      EXPECT_FALSE(accepts(text.substr(0, text.size() - 1))) << text;
    }
  }
}

TEST(JsonReader, stops_at_64_levels) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(accepts(nested(64)));
  EXPECT_FALSE(accepts(nested(65)));
  EXPECT_FALSE(accepts(std::string(1'000'000, '[')));
  EXPECT_FALSE(accepts(std::string(1'000'000, '{')));
}

TEST(JsonReader, names_the_member_at_fault) {
  JsonReader in(R"({"a":[{"b":1},{"b":"x"}]})");
  in.object(
      [&](std::string_view) { in.array([&](std::uint32_t) { in.object([&](std::string_view) { in.number(); }); }); });
  EXPECT_EQ(in.path(), "a[1].b");
  EXPECT_EQ(in.problem(), "must be a number");
}

TEST(JsonReader, shortens_long_names_in_paths) {
  const std::string text = "{\"" + std::string(5000, 'k') + "\":!}";
  JsonReader in(text);
  in.skip();
  EXPECT_EQ(in.path().size(), 64u);
}

TEST(JsonReader, keeps_the_spelling_of_numbers) {
  JsonReader in("[0.70, 1e3, -0]");
  std::string spellings;
  in.array([&](std::uint32_t) { spellings += in.number().spelling + ";"; });
  EXPECT_EQ(spellings, "0.70;1e3;-0;");
}

}  // namespace
}  // namespace molly::wire
