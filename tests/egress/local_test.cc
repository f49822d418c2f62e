#include "egress/local.h"

#include <fcntl.h>
#include <gmock/gmock.h>

#include <filesystem>

#include "../http/scripted_server.h"

namespace molly::egress {
namespace {

using http::RawPeer;
using http::ScriptedServer;

std::string at(const ScriptedServer& server) { return "127.0.0.1:" + std::to_string(server.port()); }

TEST(Local, asks_and_gets_a_whole_answer) {
  ScriptedServer server({http::answers("HTTP/1.1 404 Not Found\r\nX: y\r\nContent-Length: 2\r\n\r\nno")});
  const auto answer = ask_local(at(server), {.path = "/v1/models", .headers = {{"accept", "x"}}});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 404U);
  EXPECT_EQ(answer->headers.find("x"), "y");
  EXPECT_EQ(answer->body, "no");
}

TEST(Local, hands_a_stream_over_as_it_comes_and_stops_when_told) {
  ScriptedServer server({[](RawPeer& peer) {
    peer.read_until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n");
    while (peer.send("3\r\ntwo\r\n")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }});
  std::string text;
  const auto answer = ask_local(at(server), {.path = "/"}, [&](unsigned, std::string_view bytes) {
    text.append(bytes);
    return text.size() < 9;
  });
  ASSERT_TRUE(answer);
  EXPECT_THAT(text, ::testing::StartsWith("onetwo"));
}

TEST(Local, says_what_to_do_where_no_server_is) {
  std::uint16_t closed = 0;
  {
    closed = http::port_of(base::listen_on("127.0.0.1:0")->get());
  }
  for (const std::string& where : {std::string("/nowhere/molly.sock"), "127.0.0.1:" + std::to_string(closed)}) {
    const auto answer = ask_local(where, {.path = "/"});
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::unavailable);
  }
}

TEST(Local, goes_nowhere_but_loopback) {
  for (const char* where : {"8.8.8.8:80", "example.org:80", "", "127.0.0.1"}) {
    const auto answer = ask_local(where, {.path = "/"});
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::invalid_request) << where;
  }
}

}  // namespace
}  // namespace molly::egress
