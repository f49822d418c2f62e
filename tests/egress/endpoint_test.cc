#include "egress/endpoint.h"

#include <gtest/gtest.h>

namespace molly::egress {
namespace {

TEST(Endpoint, reads_the_forms_of_a_url) {
  const auto plain = parse_endpoint("office", Tier::t1, "http://192.168.1.20:8000/v1/");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->scheme, Scheme::http);
  EXPECT_EQ(plain->host, "192.168.1.20");
  EXPECT_EQ(plain->port, 8000);
  EXPECT_EQ(plain->base_path, "/v1");
  EXPECT_EQ(host_header(*plain), "192.168.1.20:8000");

  const auto secure = parse_endpoint("rack", Tier::t2, "https://models.example");
  ASSERT_TRUE(secure);
  EXPECT_EQ(secure->port, 443);
  EXPECT_EQ(secure->base_path, "");
  EXPECT_EQ(host_header(*secure), "models.example");

  const auto six = parse_endpoint("six", Tier::t1, "http://[::1]:8080/a/b");
  ASSERT_TRUE(six);
  EXPECT_EQ(six->host, "::1");
  EXPECT_EQ(host_header(*six), "[::1]:8080");

  const auto local = parse_endpoint("child", Tier::t0, "unix:/run/a.sock:/v1");
  ASSERT_TRUE(local);
  EXPECT_EQ(local->scheme, Scheme::unix_socket);
  EXPECT_EQ(local->socket, "/run/a.sock");
  EXPECT_EQ(local->base_path, "/v1");
  EXPECT_EQ(parse_endpoint("child", Tier::t0, "unix:/run/a.sock")->base_path, "");
}

TEST(Endpoint, refuses_what_is_no_endpoint) {
  for (const char* url : {"",
                          "host:80",
                          "ftp://a/",
                          "http://",
                          "http://:80/",
                          "http://a:0/",
                          "http://a:65536/",
                          "http://a:80x/",
                          "http://a:/",
                          "http://user:pass@a/",
                          "http://a/?q=1",
                          "http://a/#f",
                          "http://a b/",
                          "http://a/b c",
                          "http://[::1",
                          "http://[zz]/",
                          "http://[::1]x/",
                          "unix:relative.sock",
                          "unix:",
                          "unix:/a.sock:v1",
                          "http://a/\r\nX: y"}) {
    const auto endpoint = parse_endpoint("t", Tier::t1, url);
    ASSERT_FALSE(endpoint) << url;
    EXPECT_EQ(endpoint.error().code, ErrorCode::config_invalid);
    EXPECT_EQ(endpoint.error().field, "url");
  }
  EXPECT_FALSE(parse_endpoint("t", Tier::t0, "unix:/" + std::string(120, 'a')));
}

TEST(Endpoint, reads_pins_as_curl_writes_them) {
  const auto pin = parse_pin("sha256//AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
  ASSERT_TRUE(pin);
  for (std::size_t i = 0; i < pin->size(); ++i) EXPECT_EQ((*pin)[i], i);
  for (const char* text :
       {"", "sha256//", "sha256//AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8",
        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", "sha256//AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9=",
        "sha256//AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwd*h8="}) {
    EXPECT_FALSE(parse_pin(text)) << text;
  }
}

}  // namespace
}  // namespace molly::egress
