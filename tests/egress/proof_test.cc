#include "egress/proof.h"

#include <gtest/gtest.h>

namespace molly::egress {
namespace {

Endpoint endpoint(Tier tier, std::string_view url) { return *parse_endpoint("target", tier, url); }

Endpoint pinned(Tier tier, std::string_view url) {
  Endpoint made = endpoint(tier, url);
  made.pin = Pin{};
  return made;
}

boost::asio::ip::address address(const char* text) { return boost::asio::ip::make_address(text); }

TEST(Proof, knows_from_the_configuration_what_can_never_be_a_tier) {
  EXPECT_TRUE(check_tier(endpoint(Tier::t0, "unix:/run/a.sock")));
  EXPECT_FALSE(check_tier(endpoint(Tier::t0, "http://127.0.0.1:80")));
  EXPECT_FALSE(check_tier(pinned(Tier::t0, "https://127.0.0.1")));

  EXPECT_TRUE(check_tier(endpoint(Tier::t1, "unix:/run/a.sock")));
  EXPECT_TRUE(check_tier(endpoint(Tier::t1, "http://127.0.0.1:80")));
  EXPECT_TRUE(check_tier(endpoint(Tier::t1, "http://[::1]:80")));
  EXPECT_TRUE(check_tier(endpoint(Tier::t1, "http://10.1.2.3")));
  EXPECT_TRUE(check_tier(endpoint(Tier::t1, "http://printer.lan")));  // its address is checked at connection
  EXPECT_FALSE(check_tier(endpoint(Tier::t1, "http://8.8.8.8")));
  EXPECT_FALSE(check_tier(endpoint(Tier::t1, "https://8.8.8.8")));
  EXPECT_TRUE(check_tier(pinned(Tier::t1, "https://8.8.8.8")));
  EXPECT_FALSE(check_tier(pinned(Tier::t1, "http://10.1.2.3")));

  EXPECT_TRUE(check_tier(pinned(Tier::t2, "https://rack.example")));
  EXPECT_FALSE(check_tier(endpoint(Tier::t2, "https://rack.example")));
  EXPECT_FALSE(check_tier(endpoint(Tier::t2, "http://10.1.2.3")));
  EXPECT_FALSE(check_tier(endpoint(Tier::t2, "unix:/run/a.sock")));

  EXPECT_TRUE(check_tier(endpoint(Tier::t3, "https://api.example")));
  EXPECT_FALSE(check_tier(endpoint(Tier::t3, "http://api.example")));
  EXPECT_FALSE(check_tier(endpoint(Tier::t3, "unix:/run/a.sock")));
  EXPECT_FALSE(check_tier(endpoint(Tier::t3, "http://127.0.0.1:80")));
  EXPECT_TRUE(check_tier(endpoint(Tier::t3, "http://127.0.0.1:80"), PlainLoopback::allowed_at_t3));
  EXPECT_FALSE(check_tier(endpoint(Tier::t3, "http://10.1.2.3"), PlainLoopback::allowed_at_t3));
}

TEST(Proof, checks_the_address_itself_at_each_connection) {
  const Endpoint lan = endpoint(Tier::t1, "http://printer.lan");
  EXPECT_TRUE(check_address(lan, address("127.0.0.1")));
  EXPECT_TRUE(check_address(lan, address("::1")));
  EXPECT_TRUE(check_address(lan, address("::ffff:127.0.0.1")));
  EXPECT_FALSE(check_address(lan, address("8.8.8.8")));
  EXPECT_FALSE(check_address(lan, address("::ffff:8.8.8.8")));
  EXPECT_FALSE(check_address(lan, address("2606:4700::1111")));
  EXPECT_TRUE(check_address(pinned(Tier::t1, "https://far.example"), address("8.8.8.8")));
  EXPECT_TRUE(check_address(pinned(Tier::t2, "https://far.example"), address("8.8.8.8")));
  EXPECT_FALSE(check_address(endpoint(Tier::t0, "unix:/a"), address("127.0.0.1")));
  EXPECT_FALSE(check_address(endpoint(Tier::t3, "http://127.0.0.1"), address("127.0.0.1")));
}

TEST(Proof, a_public_address_is_never_on_the_local_network) {
  for (const char* text : {"8.8.8.8", "172.32.0.1", "192.169.0.1", "100.64.0.1", "2001:db8::1"}) {
    EXPECT_FALSE(is_on_link_private(address(text))) << text;
  }
}

TEST(Proof, a_file_that_is_no_socket_is_no_t0) {
  EXPECT_FALSE(check_socket_file(endpoint(Tier::t0, "unix:/etc/passwd")));
  EXPECT_TRUE(check_socket_file(endpoint(Tier::t1, "unix:/etc/passwd")));  // connecting refuses it
  EXPECT_FALSE(check_socket_file(endpoint(Tier::t2, "unix:/etc/passwd")));
}

}  // namespace
}  // namespace molly::egress
