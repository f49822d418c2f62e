#include "base/json_writer.h"

#include <gtest/gtest.h>

#include <limits>

namespace molly::base {
namespace {

TEST(JsonWriter, puts_commas_where_they_belong) {
  JsonWriter json;
  json.begin_object().member("a", 1).key("list").begin_array().value("x").begin_object().end_object().value(true);
  json.null().end_array().member("b", -2.5).raw_member("c", "[1]").end_object();
  EXPECT_EQ(json.text(), R"({"a":1,"list":["x",{},true,null],"b":-2.5,"c":[1]})");
}

TEST(JsonWriter, puts_no_comma_between_documents) {
  JsonWriter json(std::string("data: "));
  json.begin_object().end_object().raw("\n").begin_object().end_object();
  EXPECT_EQ(std::move(json).text(), "data: {}\n{}");
}

TEST(JsonWriter, escapes_what_json_cannot_hold) {
  EXPECT_EQ(json_string("a\"b\\c\n\r\t\x01\x7f"), "\"a\\\"b\\\\c\\n\\r\\t\\u0001\\u007f\"");
  EXPECT_EQ(json_string(std::string_view("\0", 1)), "\"\\u0000\"");
}

TEST(JsonWriter, keeps_utf8_and_replaces_what_is_not) {
  EXPECT_EQ(json_string("é€😀"), "\"é€😀\"");
  EXPECT_EQ(json_string("a\xFFz"), "\"a\xEF\xBF\xBDz\"");
  EXPECT_EQ(json_string("\xC3"), "\"\xEF\xBF\xBD\"");
  EXPECT_EQ(json_string("\xC0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");
  EXPECT_EQ(json_string("\xED\xA0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST(JsonWriter, writes_the_ends_of_the_number_ranges) {
  JsonWriter json;
  json.begin_array().value(std::numeric_limits<std::int64_t>::min()).value(std::numeric_limits<std::uint64_t>::max());
  json.value(std::numeric_limits<double>::infinity()).value(0.1).end_array();
  EXPECT_EQ(json.text(), "[-9223372036854775808,18446744073709551615,null,0.1]");
}

}  // namespace
}  // namespace molly::base
