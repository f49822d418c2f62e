#include <gmock/gmock.h>

#include "server_fixture.h"

namespace molly::http {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class HttpServerLimits : public ServerFixture {};

TEST_F(HttpServerLimits, refuses_what_is_not_http) {
  start();
  const std::pair<const char*, const char*> cases[] = {
      {"nonsense\r\n\r\n", "400"},
      {"GET\r\nHost: a\r\n\r\n", "400"},
      {"GET /\r\nHost: a\r\n\r\n", "400"},
      {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"G(T / HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", "505"},
      {"GET / HTTP/1.1\nHost: a\n\n", "505"},
      {"GET / HTTP/1.1\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\nHost: a\r\nBad Name: b\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n", "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: magic\r\n\r\n", "417"},
  };
  for (const auto& [request, status] : cases) {
    RawPeer peer = connect();
    peer.send(request);
    const std::string answer = peer.read_to_end();
    EXPECT_THAT(answer, StartsWith(std::string("HTTP/1.1 ") + status)) << request;
    EXPECT_THAT(answer, HasSubstr("Connection: close\r\n")) << request;
    EXPECT_THAT(answer, HasSubstr(R"("type":"invalid_request_error")")) << request;
  }
}

TEST_F(HttpServerLimits, refuses_a_head_over_the_limit) {
  options.limits.max_header_bytes = 20'000;
  start();
  const std::string fits(15'000, 'a');
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nHost: a\r\nX-Thing: " + fits + "\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
  RawPeer peer = connect();
  peer.send("GET / HTTP/1.1\r\nHost: a\r\nX-Thing: " + std::string(40'000, 'a'));
  EXPECT_THAT(peer.read_to_end(), StartsWith("HTTP/1.1 431 "));
  RawPeer many = connect();
  many.send("GET / HTTP/1.1\r\nHost: a\r\n");
  for (int i = 0; i < 1'000; ++i) many.send("X-Header-With-A-Name: and a value\r\n");
  EXPECT_THAT(many.read_to_end(), StartsWith("HTTP/1.1 431 "));
}

TEST_F(HttpServerLimits, refuses_a_body_over_the_limit_before_it_comes) {
  options.limits.max_body_bytes = 1'000;
  start();
  EXPECT_THAT(ask("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n"), StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(ask("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n"),
              StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(ask("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n" + std::string(1'000, 'x')),
              StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServerLimits, the_client_hears_the_refusal_of_a_body_it_is_still_sending) {
  options.limits.max_body_bytes = 1'000;
  start();
  RawPeer peer = connect();
  peer.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n" + std::string(2'000'000, 'x'));
  EXPECT_THAT(peer.read_to_end(), StartsWith("HTTP/1.1 413 "));
  EXPECT_FALSE(peer.was_reset());
}

TEST_F(HttpServerLimits, answers_408_to_a_head_that_trickles) {
  options.limits.header_timeout = 100ms;
  start();
  RawPeer peer = connect();
  peer.send("GET / HTTP/1.1\r\nHo");
  EXPECT_THAT(peer.read_to_end(), StartsWith("HTTP/1.1 408 "));
}

TEST_F(HttpServerLimits, answers_408_to_a_body_that_trickles) {
  options.limits.body_timeout = 100ms;
  start();
  RawPeer peer = connect();
  peer.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf");
  EXPECT_THAT(peer.read_to_end(), StartsWith("HTTP/1.1 408 "));
}

TEST_F(HttpServerLimits, closes_idle_connections_without_a_word) {
  options.limits.idle_timeout = 100ms;
  start();
  RawPeer fresh = connect();
  RawPeer used = connect();
  used.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  used.read_response();
  EXPECT_EQ(fresh.read_to_end(), "");
  EXPECT_EQ(used.read_to_end(), "");
  EXPECT_TRUE(eventually([this] { return server->connections() == 0; }));
}

TEST_F(HttpServerLimits, a_client_that_leaves_a_large_answer_ends_the_write) {
  start();
  RawPeer peer = connect();
  peer.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(eventually([this] { return server->active() == 1; }));
  peer.close();
  EXPECT_TRUE(eventually([this] { return server->connections() == 0; }));
}

TEST_F(HttpServerLimits, a_write_that_nobody_takes_times_out) {
  options.limits.write_timeout = 100ms;
  std::atomic<bool> timed_out = false;
  options.handler = [&](Exchange& exchange) -> asio::awaitable<void> {
    EXPECT_TRUE(exchange.start_stream(200, {}));
    const std::string piece(8'000, 'x');
    for (;;) {
      const auto written = co_await exchange.write(piece);
      if (written) continue;
      timed_out = written.error().code == ErrorCode::timeout;
      co_return;
    }
  };
  start();
  RawPeer peer = connect();
  peer.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(eventually([&] { return timed_out && server->connections() == 0; }));
}

TEST_F(HttpServerLimits, answers_503_above_the_limit_of_connections) {
  options.limits.max_connections = 2;
  start();
  RawPeer first = connect();
  RawPeer second = connect();
  ASSERT_TRUE(eventually([this] { return server->connections() == 2; }));
  RawPeer third = connect();
  third.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  const std::string answer = third.read_to_end();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(answer, HasSubstr("Retry-After: 1\r\n"));
  first.close();
  ASSERT_TRUE(eventually([this] { return server->connections() == 1; }));
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServerLimits, new_limits_hold_for_the_next_request) {
  start();
  on_thread([this] {
    ServerLimits limits;
    limits.max_body_bytes = 3;
    server->set_limits(limits);
  });
  EXPECT_THAT(ask("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nabcd"), StartsWith("HTTP/1.1 413 "));
}

}  // namespace
}  // namespace molly::http
