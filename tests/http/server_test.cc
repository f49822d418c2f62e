#include <gmock/gmock.h>

#include <filesystem>

#include "server_fixture.h"

namespace molly::http {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class HttpServer : public ServerFixture {};

TEST_F(HttpServer, answers_and_keeps_the_connection) {
  start();
  RawPeer peer = connect();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(peer.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"));
    const std::string answer = peer.read_response();
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\nDate: "));
    EXPECT_THAT(answer, EndsWith("\r\n\r\nhello"));
    EXPECT_THAT(answer, Not(HasSubstr("Connection")));
  }
}

TEST_F(HttpServer, hands_over_method_path_query_headers_and_peer) {
  start();
  EXPECT_THAT(ask("DELETE /a/b?c=d&e HTTP/1.1\r\nHost: a\r\nx-Thing:  some text \r\n\r\n"),
              EndsWith("DELETE /a/b ?c=d&e x=some text loopback"));
  EXPECT_THAT(ask("GET http://elsewhere/p?q HTTP/1.1\r\nHost: a\r\n\r\n"), EndsWith("GET /p ?q x=none loopback"));
}

TEST_F(HttpServer, answers_pipelined_requests_in_order) {
  start();
  RawPeer peer = connect();
  std::string requests;
  for (int i = 0; i < 200; ++i) {
    const std::string body = std::to_string(i);
    requests += "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }
  ASSERT_TRUE(peer.send(requests));
  for (int i = 0; i < 200; ++i) EXPECT_THAT(peer.read_response(), EndsWith("\r\n\r\n" + std::to_string(i)));
}

TEST_F(HttpServer, takes_a_request_in_single_bytes) {
  start();
  RawPeer peer = connect();
  for (const char c : std::string("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok")) peer.send({&c, 1});
  EXPECT_THAT(peer.read_response(), EndsWith("\r\n\r\nok"));
}

TEST_F(HttpServer, removes_chunked_encoding_from_a_body) {
  start();
  RawPeer peer = connect();
  peer.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;ext=1\r\nhello\r\n");
  peer.send("6\r\n world\r\n0\r\nTrailer: x\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(peer.read_response(), EndsWith("\r\n\r\nhello world"));
  EXPECT_THAT(peer.read_response(), HasSubstr("GET /"));
}

TEST_F(HttpServer, says_continue_only_when_the_body_may_come) {
  options.limits.max_body_bytes = 100;
  start();
  RawPeer peer = connect();
  peer.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(peer.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  peer.send("hello");
  EXPECT_THAT(peer.read_response(), EndsWith("hello"));
  peer.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 500\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_THAT(peer.read_response(), StartsWith("HTTP/1.1 413 "));
}

TEST_F(HttpServer, leaves_out_the_body_for_head) {
  start();
  RawPeer peer = connect();
  peer.send("HEAD /what HTTP/1.1\r\nHost: a\r\n\r\nHEAD /stream HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(peer.read_until("\r\n\r\n"), HasSubstr("Content-Length: 28\r\n"));
  EXPECT_THAT(peer.read_to_end(), EndsWith("Transfer-Encoding: chunked\r\n\r\n"));
}

TEST_F(HttpServer, streams_in_chunks_and_keeps_the_connection) {
  start();
  RawPeer peer = connect();
  for (int i = 0; i < 2; ++i) {
    peer.send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_THAT(peer.read_until("\r\n\r\n"), HasSubstr("Transfer-Encoding: chunked"));
    EXPECT_EQ(peer.read_until("\r\n0\r\n\r\n"), "4\r\none\n\r\n4\r\ntwo\n\r\n6\r\nthree\n\r\n4\r\nend\n\r\n0\r\n\r\n");
  }
}

TEST_F(HttpServer, streams_until_close_for_http_1_0) {
  start();
  RawPeer peer = connect();
  peer.send("GET /stream HTTP/1.0\r\n\r\n");
  const std::string answer = peer.read_to_end();
  EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\none\ntwo\nthree\nend\n"));
}

TEST_F(HttpServer, closes_when_asked_and_keeps_http_1_0_alive_when_asked) {
  start();
  RawPeer peer = connect();
  peer.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(peer.read_to_end(), HasSubstr("Connection: close\r\n"));
  RawPeer old = connect();
  old.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_THAT(old.read_response(), HasSubstr("Connection: keep-alive\r\n"));
  old.send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_THAT(old.read_to_end(), HasSubstr("Connection: close\r\n"));
}

TEST_F(HttpServer, sends_large_answers_whole) {
  start();
  RawPeer peer = connect();
  peer.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(peer.read_response().substr(0, 15), "HTTP/1.1 200 OK");
  EXPECT_TRUE(eventually([this] { return large_done.load(); }));
  EXPECT_TRUE(large_result);
}

TEST_F(HttpServer, takes_large_bodies_whole) {
  start();
  const std::string body(3 << 20, 'b');
  RawPeer peer = connect();
  std::thread sender([&] {
    peer.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  });
  sender.join();
  EXPECT_TRUE(peer.read_response().ends_with(body));
}

TEST_F(HttpServer, serves_unix_sockets) {
  start();
  std::string folder = (std::filesystem::temp_directory_path() / "molly-http-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/server.sock";
  auto listening = base::listen_on("unix:" + path);
  ASSERT_TRUE(listening) << listening.error().message;
  on_thread([&] { EXPECT_TRUE(server->listen(listening->release())); });
  RawPeer peer = RawPeer::to_socket(path);
  peer.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(peer.read_response(), EndsWith("GET / ? x=none unix"));
  std::filesystem::remove_all(folder);
}

TEST_F(HttpServer, answers_500_for_a_handler_that_does_not) {
  std::string fault;
  options.on_fault = [&](std::string_view what) { fault = what; };
  start();
  const std::string answer = ask("GET /silent HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(answer, HasSubstr(R"({"error":{"message":"an internal error)"));
  EXPECT_EQ(fault, "");
  EXPECT_THAT(ask("GET /fault HTTP/1.1\r\nHost: a\r\n\r\n"), StartsWith("HTTP/1.1 500 "));
  stop();
  EXPECT_EQ(fault, "a bug");
}

TEST_F(HttpServer, breaks_a_stream_that_was_not_finished) {
  start();
  RawPeer peer = connect();
  peer.send("GET /unfinished HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(peer.read_to_end(), Not(HasSubstr("0\r\n\r\n")));
}

TEST_F(HttpServer, refuses_headers_that_would_split_the_answer) {
  std::string message;
  options.handler = [&](Exchange& exchange) -> asio::awaitable<void> {
    const auto sent = co_await exchange.respond(200, {{"X-A", "b\r\nX-C: d"}}, "");
    if (!sent) message = sent.error().message;
  };
  start();
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), StartsWith("HTTP/1.1 500 "));
  stop();
  EXPECT_EQ(message, "a header of the answer is not valid");
}

TEST_F(HttpServer, counts_what_happened) {
  start();
  ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  ask("nonsense\r\n\r\n");
  const ServerStatistics statistics = server->statistics();
  EXPECT_EQ(statistics.connections, 2U);
  EXPECT_EQ(statistics.requests, 1U);
  EXPECT_EQ(statistics.malformed, 1U);
}

}  // namespace
}  // namespace molly::http
