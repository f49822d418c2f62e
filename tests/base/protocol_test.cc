#include "base/parent/protocol.h"

#include <gtest/gtest.h>

#include "base/parent/parent.h"

namespace molly::base {
namespace {

Message full_message() {
  return {.kind = MessageKind::spawn,
          .sequence = 7,
          .id = 0x0123456789abcdef,
          .number = -9,
          .arguments = {"/usr/bin/program", "", "two words"},
          .environment = {"A=1"},
          .text = "/var/log",
          .blob = std::string("\0\1\2", 3)};
}

TEST(Protocol, reads_back_what_it_writes) { EXPECT_EQ(decode(encode(full_message())), full_message()); }

TEST(Protocol, refuses_every_truncation_and_anything_behind_the_end) {
  auto bytes = encode(full_message());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(decode(std::span(bytes).first(length))) << length;
  }
  bytes.push_back(0);
  EXPECT_FALSE(decode(bytes));
}

TEST(Protocol, a_count_larger_than_the_packet_takes_no_memory) {
  auto bytes = encode(Message{});
  for (std::size_t i = 17; i < 21; ++i) bytes[i] = 0xff;  // the number of arguments
  EXPECT_FALSE(decode(bytes));
}

TEST(Inherited, names_the_socket_and_the_listeners) {
  const auto inherited = parse_inherited("3;4=127.0.0.1:7411;5=unix:/run/a=b.sock");
  ASSERT_TRUE(inherited);
  EXPECT_EQ(inherited->parent_socket, 3);
  ASSERT_EQ(inherited->listeners.size(), 2U);
  EXPECT_EQ(inherited->listeners[0].descriptor, 4);
  EXPECT_EQ(inherited->listeners[1].address, "unix:/run/a=b.sock");
}

TEST(Inherited, refuses_what_the_parent_never_writes) {
  for (const char* text : {"", "x", "-1", "3;4", "3;x=127.0.0.1:1", "3;=a"})
    EXPECT_FALSE(parse_inherited(text)) << text;
}

}  // namespace
}  // namespace molly::base
