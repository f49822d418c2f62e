#include "http/header.h"

#include <gtest/gtest.h>

#include "http/client.h"

namespace molly::http {
namespace {

TEST(Headers, are_found_without_case_and_keep_their_order) {
  HeaderList headers;
  headers.add("Content-Type", "text/plain");
  headers.add("X-One", "1");
  headers.add("x-one", "2");
  EXPECT_EQ(headers.find("content-type"), "text/plain");
  EXPECT_EQ(headers.find("X-ONE"), "1");
  EXPECT_EQ(headers.count("x-one"), 2U);
  EXPECT_FALSE(headers.find("content"));
  EXPECT_EQ(headers[2].value, "2");
  headers.clear();
  EXPECT_TRUE(headers.empty());
}

TEST(Headers, values_and_names_cannot_smuggle) {
  EXPECT_TRUE(is_header_value("some text\twith \xc3\xa4"));
  EXPECT_FALSE(is_header_value("a\r\nb: c"));
  EXPECT_FALSE(is_header_value(std::string_view("a\0b", 3)));
  EXPECT_TRUE(is_header_name("X-Molly_1"));
  for (const char* name : {"", "a b", "a:", "a\r", "\xc3\xa4"}) EXPECT_FALSE(is_header_name(name)) << name;
}

TEST(Headers, a_request_head_is_refused_rather_than_split) {
  const Header bad[] = {{"X", "a\r\nY: b"}};
  EXPECT_FALSE(request_head("GET", "/", "host", bad, std::nullopt));
  EXPECT_FALSE(request_head("GET", "/a b", "host", {}, std::nullopt));
  EXPECT_FALSE(request_head("GE T", "/", "host", {}, std::nullopt));
  EXPECT_FALSE(request_head("GET", "/", "ho\nst", {}, std::nullopt));
  const Header good[] = {{"Accept", "x"}};
  EXPECT_EQ(request_head("POST", "/v1", "host:1", good, 3).value(),
            "POST /v1 HTTP/1.1\r\nHost: host:1\r\nAccept: x\r\nContent-Length: 3\r\n\r\n");
}

}  // namespace
}  // namespace molly::http
